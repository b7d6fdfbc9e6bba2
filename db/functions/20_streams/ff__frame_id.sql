-- A place in a stream, from text: <ms>-<seq>; with p_bounds also start, end and a bare <ms>, which is seq p_bare_seq.
-- Checks before it casts. Errors: invalid_input (NULL), invalid_cursor.
create or replace function ff__frame_id(
    p_arg text, p_cursor text, p_bounds boolean, p_bare_seq int
) returns ff_frame_id
language plpgsql stable
as $$
declare
    v_ms text := split_part(p_cursor, '-', 1);
    v_seq text := split_part(p_cursor, '-', 2);
begin
    if p_cursor is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif p_bounds and p_cursor = 'start' then
        return (0, 0)::ff_frame_id;
    elsif p_bounds and p_cursor = 'end' then
        return (9223372036854775807, 2147483647)::ff_frame_id;
    elsif length(p_cursor) > 30 or p_cursor !~ '^(0|[1-9][0-9]{0,18})(-(0|[1-9][0-9]{0,9}))?$'
          or (not p_bounds and v_seq = '')
          or lpad(v_ms, 19, '0') collate "C" > '9223372036854775807'
          or lpad(v_seq, 10, '0') collate "C" > '2147483647'
    then
        perform ff__raise('invalid_cursor', format('%s is not a place in a stream', p_arg),
                          jsonb_build_object('arg', p_arg, 'cursor', left(p_cursor, 80)));
    end if;
    return (v_ms::bigint, coalesce(nullif(v_seq, '')::int, p_bare_seq))::ff_frame_id;
end
$$;
