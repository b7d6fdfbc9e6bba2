-- What time has done to a claimable row that nobody noticed yet: its deadline or attempt timeout passed, or its work
-- crashed as often as it may. True: the row was ended or put back, and is not to be claimed as it was.
create or replace function ff__heal(e ff_exec) returns boolean
language plpgsql volatile
as $$
begin
    if e.deadline_at_ms <= e.now_ms or e.attempt_timeout_at_ms <= e.now_ms then
        return ff__expire_if_due(e);
    elsif e.lifecycle_phase = 'active' and e.lease_reclaim_count >= ff__max_reclaims(e.execution_id) then
        perform ff__give_up_reclaims(e);
        return true;
    end if;
    return false;
end
$$;
