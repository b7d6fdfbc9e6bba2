-- The open suspension of an execution that was locked. Errors: corrupt_state, if it is suspended without one.
create or replace function ff__open_suspension(e ff_exec) returns ff_suspension
language plpgsql stable
as $$
declare
    s ff_suspension;
begin
    select x.* into s from ff_suspension x where x.execution_id = e.execution_id and x.closed_at_ms is null;
    if not found then
        perform ff__raise('corrupt_state',
                          format('execution %s is suspended without an open suspension',
                                 ff__wire_id(e.partition_key, e.execution_id)),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id)));
    end if;
    return s;
end
$$;
