-- What time has done to a claimable row that nobody noticed yet: its deadline or attempt timeout passed, or its work
-- crashed as often as it may. True: the row is not to be claimed as it
-- was; unless p_do is false, it was ended or put back.
create or replace function ff__heal(e ff_exec, p_do boolean) returns boolean
language plpgsql volatile
as $$
begin
    if e.deadline_at_ms <= e.now_ms or e.lifecycle_phase = 'active' and e.attempt_timeout_at_ms <= e.now_ms then
        return not p_do or ff__expire_if_due(e);
    elsif e.lifecycle_phase = 'active' and e.lease_reclaim_count >= ff__max_reclaims(e.execution_id) then
        if p_do then
            perform ff__give_up_reclaims(e);
        end if;
        return true;
    end if;
    return false;
end
$$;
