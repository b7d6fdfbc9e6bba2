-- Opens an operation in place of the lease holder: the execution must be active; the fence is not asked for.
-- Says so in an operator event. Errors: invalid_execution_id, execution_not_found, execution_not_active.
create or replace function ff__override(p_execution_id text, p_attempt_index int, p_op text) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec := ff__lock_execution(p_execution_id);
begin
    if e.lifecycle_phase <> 'active' then
        perform ff__not_active(e);
    elsif p_attempt_index <> e.current_attempt_index then
        perform ff__raise('stale_lease', format('execution %s runs attempt %s, not %s', p_execution_id,
                                                e.current_attempt_index, p_attempt_index),
                          jsonb_build_object('execution_id', p_execution_id, 'lease_epoch', e.lease_epoch,
                                             'attempt_index', e.current_attempt_index));
    end if;
    return ff__emit(e, 'operator', 'overridden', null, jsonb_build_object('op', p_op));
end
$$;
