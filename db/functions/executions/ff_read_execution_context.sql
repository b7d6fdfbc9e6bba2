create or replace function ff_read_execution_context(p_execution_id text)
returns table (payload bytea, payload_encoding text, execution_kind text, namespace text, tags jsonb)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select c.payload, c.payload_encoding, c.execution_kind, c.namespace, coalesce(c.tags, '{}')
          from ff_execution c
         where c.execution_id = v_id;
end
$$;

comment on function ff_read_execution_context(text) is
$$The input of an execution (payload, encoding, kind, namespace) and its tags. No row: there is no such execution.

Rows: at most one
Nullable: payload, payload_encoding
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
