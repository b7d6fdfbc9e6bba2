create or replace function ff_read_total_attempt_count(p_execution_id text)
returns table (total_attempt_count int)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select c.total_attempt_count
          from ff_execution c
         where c.execution_id = v_id;
end
$$;

comment on function ff_read_total_attempt_count(text) is
$$The number of attempts of an execution. No row: there is no such execution.

Rows: at most one
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
