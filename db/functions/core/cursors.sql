-- Parses a page cursor <ms>-<uuid>; NULL for none. Checks before it casts. Errors: invalid_cursor.
create or replace function ff__decode_time_cursor(p_cursor text) returns ff_time_cursor
language plpgsql stable
as $$
declare
    v_uuid text := right(p_cursor, 36);
    v_ms text := left(p_cursor, greatest(length(p_cursor) - 37, 0));
begin
    if p_cursor is null then
        return null;
    elsif p_cursor not like '%-________-____-____-____-____________'
          or length(replace(v_uuid, '-', '')) <> 32 or v_uuid ~ '[^0-9a-f-]'
          or v_ms !~ '^-?[0-9]{1,18}$' then
        perform ff__raise('invalid_cursor', 'not a cursor of this list',
                          jsonb_build_object('cursor', left(p_cursor, 80)));
    end if;
    return (v_ms::bigint, v_uuid::uuid)::ff_time_cursor;
end
$$;

-- Parses the cursor of a list ordered by execution: the id of the last row read. Errors: invalid_cursor.
create or replace function ff__decode_execution_cursor(p_after text) returns uuid
language plpgsql stable
as $$
begin
    if p_after is null then
        return null;
    elsif p_after
          !~ E'^\\{fp:[0-9]{1,3}\\}:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$' then
        perform ff__raise('invalid_cursor', 'p_after is not an execution id',
                          jsonb_build_object('cursor', left(p_after, 64)));
    end if;
    return right(p_after, 36)::uuid;
end
$$;
