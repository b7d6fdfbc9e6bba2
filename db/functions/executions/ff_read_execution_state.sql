create or replace function ff_read_execution_state(p_execution_id text)
returns table (public_state text)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select w.public_state
          from ff_execution c join ff_state_word w on w.state = c.state
         where c.execution_id = v_id;
end
$$;

comment on function ff_read_execution_state(text) is
$$The public state of an execution. No row: there is no such execution.

Rows: at most one
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
