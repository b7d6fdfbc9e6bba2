create or replace function ff_read_current_attempt_index(p_execution_id text)
returns table (attempt_index int)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select c.attempt_index
          from ff_execution c
         where c.execution_id = v_id;
end
$$;

comment on function ff_read_current_attempt_index(text) is
$$The index of the current or last attempt; NULL before the first claim. No row: there is no such execution.

Rows: at most one
Nullable: attempt_index
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
