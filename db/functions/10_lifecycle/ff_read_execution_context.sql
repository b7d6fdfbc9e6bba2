create or replace function ff_read_execution_context(p_execution_id text)
returns table (payload bytea, payload_encoding text, execution_kind text, namespace text, tags jsonb)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select i.payload, i.payload_encoding, i.execution_kind, i.namespace, i.tags
          from ff_exec_core c join ff_exec_input i on i.execution_id = c.execution_id
         where c.execution_id = v_id;
end
$$;

comment on function ff_read_execution_context(text) is
$$What an execution was submitted with, and its tags. No row: there is no such execution.

Rows: at most one
Nullable: payload, payload_encoding
Errors: invalid_input, invalid_execution_id$$;
