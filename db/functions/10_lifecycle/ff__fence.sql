-- The fence check, the only one (ff__verdict): locks the execution and opens the operation, if this fence holds its live
-- lease. A row of NULLs means: the fence was given up by this very operation (p_op); answer what was recorded.
-- Order: execution_not_found, replay, execution_not_active, stale_lease, lease_revoked, lease_expired.
create or replace function ff__fence(p_fence ff_fence, p_op text default null) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec := ff__open(p_fence.execution_id);
    v_none ff_exec;
    v_verdict text := ff__verdict(e, p_fence, p_op);
begin
    if v_verdict is null then
        return e;
    elsif v_verdict = 'replay' then
        return v_none;
    elsif v_verdict = 'execution_not_found' then
        perform ff__not_found(p_fence.wire_id);
    elsif v_verdict = 'execution_not_active' then
        perform ff__not_active(e);
    elsif v_verdict = 'stale_lease' then
        perform ff__raise('stale_lease',
                          format('this is not the current lease on execution %s, which has epoch %s', p_fence.wire_id,
                                 e.lease_epoch),
                          jsonb_build_object('execution_id', p_fence.wire_id, 'lease_epoch', e.lease_epoch,
                                             'attempt_index', e.current_attempt_index));
    elsif v_verdict = 'lease_revoked' then
        perform ff__raise('lease_revoked', format('the lease on execution %s was revoked', p_fence.wire_id),
                          jsonb_build_object('execution_id', p_fence.wire_id,
                                             'reason', (select c.lease_revoke_reason from ff_exec_core c
                                                         where c.execution_id = e.execution_id)));
    end if;
    perform ff__raise('lease_expired', format('the lease on execution %s expired %s ms ago', p_fence.wire_id,
                                              e.now_ms - e.lease_expires_at_ms),
                      jsonb_build_object('execution_id', p_fence.wire_id, 'reason', ff__lapse_reason(e),
                                         'lease_expires_at_ms', e.lease_expires_at_ms));
    return null;
end
$$;
