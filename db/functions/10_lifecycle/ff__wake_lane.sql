-- An execution became ready on a lane. Rings if a claim came back empty and armed it: disarms it and notifies channel
-- ff_lane, at most once per idle spell. Never waits: a lane row that is busy is being armed or disarmed by somebody else.
-- p_execution_id, unless it is new, is seen by claims that look from a mark (ff__recall).
create or replace function ff__wake_lane(p_lane_id text, p_execution_id uuid default null) returns void
language plpgsql volatile
as $$
declare
    v_armed boolean;
    v_marked boolean;
begin
    select l.wake_armed, l.marked into v_armed, v_marked from ff_lane_registry l where l.lane_id = p_lane_id;
    if v_marked and p_execution_id is not null then
        perform ff__recall(p_execution_id);
    end if;
    if v_armed then
        update ff_lane_registry l set wake_armed = false
         where l.lane_id = (select x.lane_id from ff_lane_registry x
                             where x.lane_id = p_lane_id and x.wake_armed for update skip locked);
        if found and (select s.value from ff_setting s where s.name = 'notify') = 'on' then
            perform pg_notify('ff_lane', p_lane_id);
        end if;
    end if;
end
$$;
