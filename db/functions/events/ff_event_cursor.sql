create or replace function ff_event_cursor(p_at text default 'now', out cursor text)
language plpgsql stable security definer
as $$
declare
    v_horizon bigint := ff__event_horizon();
    v_gen int;
    v_oldest ff_event_place;
begin
    if p_at is null or p_at not in ('now', 'oldest') then
        perform ff__invalid('p_at', 'must be now or oldest');
    end if;
    v_gen := ff__event_generation();
    if p_at = 'now' then
        cursor := ff__encode_event_cursor(v_gen, v_horizon, 0);
    else
        v_oldest := ff__oldest_event(null);
        cursor := ff__encode_event_cursor(v_oldest.gen, v_oldest.ord, v_oldest.event_id);
    end if;
end
$$;

comment on function ff_event_cursor(text) is
$$Returns a start cursor, valid for every reader. now: all events that commit from now on, and possibly a few that have
just been committed; oldest: all events since the last event that was trimmed from any family.

Errors: invalid_input, event_generation_stale$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
