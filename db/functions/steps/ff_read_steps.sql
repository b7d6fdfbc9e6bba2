create or replace function ff_read_steps(p_execution_id text, p_after text default null, p_limit int default 1000)
returns table (
    name text, result bytea, result_encoding text, attempt_index int, recorded_at_ms bigint, cursor text
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    perform ff__check_limit(p_limit);
    if p_after !~ '^[1-9][0-9]{0,8}$' then
        perform ff__raise('invalid_cursor', 'not a cursor of this list',
                          jsonb_build_object('cursor', left(p_after, 80)));
    end if;
    return query
        select s.name, s.result, s.result_encoding, s.attempt_index, s.recorded_at_ms, s.ordinal::text
          from ff_step s
         where s.execution_id = v_id and s.ordinal > coalesce(p_after::int, 0)
         order by s.ordinal limit p_limit;
end
$$;

comment on function ff_read_steps(text, text, int) is
$$The recorded steps of an execution, of all attempts, in the order of recording. p_after: the cursor of the last row
read. No row: no step is recorded, or there is no such execution.

Nullable: result, result_encoding
Errors: invalid_input, invalid_execution_id, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
