-- Raises execution_not_leaseable with the phase the execution is in.
create or replace function ff__not_leaseable(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_leaseable',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id), e.public_state),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'lifecycle_phase', e.lifecycle_phase, 'public_state', e.public_state));
end
$$;
