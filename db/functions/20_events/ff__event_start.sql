-- Where a reader starts: p_after NULL: with the oldest event that is kept; now: at the horizon; else after that cursor.
-- Errors: invalid_cursor, cursor_expired (DETAIL.oldest_cursor).
create or replace function ff__event_start(p_family text, p_after text, p_gen int, p_horizon bigint) returns ff_event_place
language plpgsql stable
as $$
declare
    v ff_event_place;
    v_oldest ff_event_place;
begin
    if p_after is null then
        return (0, 0, 0)::ff_event_place;
    elsif p_after = 'now' then
        return (p_gen, p_horizon, 0)::ff_event_place;
    end if;
    v := ff__decode_event_cursor(p_after);
    v_oldest := ff__oldest_event(p_family);
    if v.gen > p_gen then
        perform ff__raise('invalid_cursor', 'the cursor is of a generation of events that this database has not reached',
                          jsonb_build_object('cursor', p_after, 'gen', p_gen));
    elsif (v.gen, v.ord, v.event_id) < (v_oldest.gen, v_oldest.ord, v_oldest.event_id) then
        perform ff__raise('cursor_expired', 'events after this cursor have been trimmed',
                          jsonb_build_object('family', p_family, 'cursor', p_after,
                                             'oldest_cursor', ff__encode_event_cursor(v_oldest.gen, v_oldest.ord,
                                                                                      v_oldest.event_id)));
    end if;
    return v;
end
$$;
