create or replace function ff_resolve_execution_flow_id(p_execution_id text)
returns table (flow_id uuid)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select c.flow_id from ff_execution c where c.execution_id = v_id and c.flow_id is not null;
end
$$;

comment on function ff_resolve_execution_flow_id(text) is
$$The flow of an execution. No row: the execution is in no flow, or does not exist.

Rows: at most one
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
