-- Applies a deadline or attempt timeout that has passed; whether one had.
create or replace function ff__expire_if_due(e ff_exec) returns boolean
language plpgsql volatile
as $$
begin
    if e.deadline_at_ms <= e.now_ms then
        perform ff__expire_deadline(e);
    elsif e.lifecycle_phase = 'active' and e.attempt_timeout_at_ms <= e.now_ms then
        perform ff__expire_attempt(e);
    else
        return false;
    end if;
    return true;
end
$$;
