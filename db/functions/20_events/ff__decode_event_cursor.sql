-- The place that a cursor names; reads no row. Checks before it casts. Errors: invalid_cursor.
create or replace function ff__decode_event_cursor(p_cursor text) returns ff_event_place
language plpgsql stable
as $$
declare
    v_part text[] := string_to_array(left(p_cursor, 80), '.');
begin
    if length(p_cursor) > 80
       or p_cursor !~ E'^e1\\.(0|[1-9][0-9]{0,9})\\.(0|[1-9][0-9]{0,18})\\.(0|[1-9][0-9]{0,18})$'
       or lpad(v_part[2], 10, '0') collate "C" > '2147483647'
       or lpad(v_part[3], 19, '0') collate "C" > '9223372036854775807'
       or lpad(v_part[4], 19, '0') collate "C" > '9223372036854775807'
    then
        perform ff__raise('invalid_cursor', 'not a cursor of the events',
                          jsonb_build_object('cursor', left(p_cursor, 80)));
    end if;
    return (v_part[2]::int, v_part[3]::bigint, v_part[4]::bigint)::ff_event_place;
end
$$;
