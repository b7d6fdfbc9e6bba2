-- Raises execution_already_terminal with the state the execution is in.
create or replace function ff__already_terminal(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_already_terminal',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id), e.public_state),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'public_state', e.public_state));
end
$$;
