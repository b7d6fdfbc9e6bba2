-- What the fence check says of an execution that was opened: NULL if this fence holds its live lease, 'replay' if the
-- lease was given up by this very operation (p_op), otherwise the kind of error, in the order of the contract.
create or replace function ff__verdict(e ff_exec, p_fence ff_fence, p_op text) returns text
language plpgsql stable
as $$
begin
    if e.lifecycle_phase = 'active' and e.lease_id = p_fence.lease_id and e.lease_epoch = p_fence.lease_epoch
       and e.current_attempt_id = p_fence.attempt_id
       and (p_fence.attempt_index is null or e.current_attempt_index = p_fence.attempt_index)
    then
        return case when e.ownership_state = 'lease_revoked' then 'lease_revoked'
                    when e.ownership_state <> 'leased' or e.lease_expires_at_ms <= e.now_ms then 'lease_expired' end;
    elsif e.execution_id is null then
        return 'execution_not_found';
    elsif p_op is not null and (ff__recorded_release(p_fence, p_op)).attempt_index is not null then
        return 'replay';
    end if;
    return case e.lifecycle_phase when 'active' then 'stale_lease' else 'execution_not_active' end;
end
$$;
