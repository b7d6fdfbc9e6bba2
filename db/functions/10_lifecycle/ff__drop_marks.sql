-- Deletes the marks of a lane, set and priority that are older than p_before (see ff_scan_mark). Never waits.
create or replace function ff__drop_marks(p_lane_id text, p_caps_key text, p_priority int, p_before bigint) returns void
language plpgsql volatile
as $$
begin
    delete from ff_scan_mark m
     where m.lane_id = p_lane_id and m.caps_key = p_caps_key and m.priority = p_priority
       and m.mark_no in (select x.mark_no from ff_scan_mark x
                          where x.lane_id = p_lane_id and x.caps_key = p_caps_key and x.priority = p_priority
                            and x.mark_no < p_before for update skip locked);
end
$$;
