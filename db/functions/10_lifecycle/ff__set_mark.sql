-- Makes a mark, in place of those that were (ff_scan_mark): nothing of this lane, set and priority before that place is
-- ready, or due for priority -1. p_looked_ms and p_walked: when somebody last looked behind it, and how far the walk is.
-- Never waits: what others hold, they replace.
create or replace function ff__set_mark(
    p_lane_id text, p_caps_key text, p_priority int, p_from_ms bigint, p_from_id uuid, p_looked_ms bigint, p_walked bigint
) returns void
language plpgsql volatile
as $$
declare
    v_no bigint;
begin
    insert into ff_scan_mark (lane_id, caps_key, priority, from_ms, from_id, looked_ms, walked)
    values (p_lane_id, p_caps_key, p_priority, p_from_ms, coalesce(p_from_id, '00000000-0000-0000-0000-000000000000'),
            p_looked_ms, p_walked)
    returning mark_no into v_no;
    perform ff__drop_marks(p_lane_id, p_caps_key, p_priority, v_no);
    update ff_lane_registry l set marked = true
     where l.lane_id = (select x.lane_id from ff_lane_registry x
                         where x.lane_id = p_lane_id and not x.marked for update skip locked);
end
$$;
