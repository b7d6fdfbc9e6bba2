create or replace function ff_get_execution_namespace(p_execution_id text)
returns table (namespace text)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select c.namespace
          from ff_exec_core c
         where c.execution_id = v_id;
end
$$;

comment on function ff_get_execution_namespace(text) is
$$The namespace of an execution. No row: there is no such execution.

Rows: at most one
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
