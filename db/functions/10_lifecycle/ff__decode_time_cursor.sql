-- A page cursor <ms>-<uuid>; NULL for none. Checks before it casts. Errors: invalid_cursor.
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
