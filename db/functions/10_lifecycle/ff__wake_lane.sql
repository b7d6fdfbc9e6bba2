-- An execution became ready on a lane. Rings if a claim came back empty and armed it: disarms it and notifies channel
-- ff_lane, at most once per idle spell. Never waits: a lane row that is busy is being armed or disarmed by somebody else.
create or replace function ff__wake_lane(p_lane_id text) returns void
language plpgsql volatile
as $$
begin
    if (select l.wake_armed from ff_lane_registry l where l.lane_id = p_lane_id) then
        update ff_lane_registry l set wake_armed = false
         where l.lane_id = (select x.lane_id from ff_lane_registry x
                             where x.lane_id = p_lane_id and x.wake_armed for update skip locked);
        if found and (select s.value from ff_setting s where s.name = 'notify') = 'on' then
            perform pg_notify('ff_lane', p_lane_id);
        end if;
    end if;
end
$$;
