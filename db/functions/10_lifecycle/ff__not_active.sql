-- Raises execution_not_active with the state the execution is in.
create or replace function ff__not_active(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_active',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id), e.public_state),
                      jsonb_build_object(
                          'execution_id', ff__wire_id(e.partition_key, e.execution_id),
                          'lifecycle_phase', e.lifecycle_phase, 'terminal_outcome',
                          case when e.lifecycle_phase <> 'terminal' then 'none'
                               when e.public_state = 'completed' then 'success' else e.public_state end,
                          'public_state', e.public_state, 'lease_epoch', e.lease_epoch,
                          'attempt_index', e.current_attempt_index));
end
$$;
