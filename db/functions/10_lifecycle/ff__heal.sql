-- What time has done to a claimable row that nobody noticed yet: its deadline or attempt timeout passed, or its work
-- crashed as often as it may. True: the row was ended or put back, and is not to be claimed as it was.
create or replace function ff__heal(e ff_exec) returns boolean
language plpgsql volatile
as $$
begin
    if e.deadline_at_ms <= e.now_ms then
        perform ff__expire_deadline(e);
    elsif e.lifecycle_phase <> 'active' then
        return false;
    elsif e.attempt_timeout_at_ms <= e.now_ms then
        perform ff__expire_attempt(e);
    elsif e.lease_reclaim_count >= ff__max_reclaims(e.execution_id) then
        perform ff__give_up_reclaims(e);
    else
        return false;
    end if;
    return true;
end
$$;
