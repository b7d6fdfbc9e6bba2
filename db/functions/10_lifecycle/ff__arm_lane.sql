-- A claim came back empty: the next execution that becomes ready on this lane rings (ff__wake_lane).
-- Never waits for the lane row.
create or replace function ff__arm_lane(p_lane_id text) returns void
language plpgsql volatile
as $$
begin
    update ff_lane_registry l set wake_armed = true
     where l.lane_id = (select x.lane_id from ff_lane_registry x
                         where x.lane_id = p_lane_id and not x.wake_armed for update skip locked);
end
$$;
