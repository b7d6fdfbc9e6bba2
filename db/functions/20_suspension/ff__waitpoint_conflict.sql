-- Raises waitpoint_conflict.
create or replace function ff__waitpoint_conflict(e ff_exec, p_waitpoint_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('waitpoint_conflict', format('there is a waitpoint %s already', p_waitpoint_id),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'waitpoint_id', p_waitpoint_id));
end
$$;
