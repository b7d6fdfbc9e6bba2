create or replace function ff_get_execution_tag(p_execution_id text, p_key text)
returns table (value text)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if p_key is null then
        perform ff__invalid('p_key', 'must not be null');
    end if;
    return query
        select c.tags ->> p_key from ff_execution c where c.execution_id = v_id and c.tags ? p_key;
end
$$;

comment on function ff_get_execution_tag(text, text) is
$$The value of one tag. No row: the execution does not have this tag, or there is no such execution.

Rows: at most one
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
