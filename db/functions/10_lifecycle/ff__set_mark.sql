-- Makes a mark, in place of those that were (ff_scan_mark): nothing of this lane, set and priority before that place is
-- ready, or due for priority -1. p_walked is the length of the walk that found it out.
create or replace function ff__set_mark(
    p_lane_id text, p_caps_key text, p_priority int, p_from_ms bigint, p_from_id uuid, p_walked bigint
) returns void
language plpgsql volatile
as $$
declare
    v_no bigint;
begin
    insert into ff_scan_mark (lane_id, caps_key, priority, from_ms, from_id, made_at_ms, walked)
    values (p_lane_id, p_caps_key, p_priority, p_from_ms,
            coalesce(p_from_id, '00000000-0000-0000-0000-000000000000'), ff_now_ms(), p_walked)
    returning mark_no into v_no;
    delete from ff_scan_mark m
     where m.lane_id = p_lane_id and m.caps_key = p_caps_key and m.priority = p_priority and m.mark_no < v_no;
    update ff_lane_registry l set marked = true
     where l.lane_id = (select x.lane_id from ff_lane_registry x
                         where x.lane_id = p_lane_id and not x.marked for update skip locked);
end
$$;
