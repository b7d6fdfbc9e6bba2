-- The newest mark of each priority of a lane's capability set (see ff_scan_mark), highest priority first: one probe each,
-- however many older ones there are.
create or replace function ff__marks(p_lane_id text, p_caps_key text) returns setof ff_scan_mark
language plpgsql stable
as $$
declare
    m ff_scan_mark;
begin
    m.priority := 9001;
    loop
        select x.* into m from ff_scan_mark x
         where x.lane_id = p_lane_id and x.caps_key = p_caps_key and x.priority < m.priority
         order by x.priority desc, x.mark_no desc limit 1;
        exit when not found;
        return next m;
    end loop;
end
$$;
