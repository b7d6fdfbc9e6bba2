-- After a walk over many dead entries: moves the marks of a lane's capability set up, and makes one for p_priority, where
-- the walk ended (see ff_scan_mark). With p_from_start it looks behind the marks instead: moves back one that has passed
-- something, drops one that is no longer needed. A mark stays a second behind the clock, for those who have written and
-- not yet committed. Locks nothing but the lane's row, and never waits.
create or replace function ff__mark_scan(p_lane_id text, p_caps_key text, p_priority int, p_from_start boolean default false)
returns void
language plpgsql volatile
as $$
declare
    c_long constant int := 500;
    v_latest bigint := ff_now_ms() - 1000;
    v_first bigint;
    v_walked bigint;
    m record;
begin
    for m in
        select x.priority, x.from_ms, x.walked from ff__marks(p_lane_id, p_caps_key) x
        union all
        select y.priority, null, 0
          from unnest(array[p_priority, case when p_caps_key = '' then -1 end]) y(priority)
         where y.priority is not null
           and y.priority not in (select z.priority from ff__marks(p_lane_id, p_caps_key) z)
    loop
        v_walked := ff__walked();
        if m.priority = -1 then
            v_first := (
                select coalesce(c.lease_check_at_ms, c.delay_until_ms) from ff_exec_core c
                 where c.lane_id = p_lane_id
                   and coalesce(c.lease_check_at_ms, c.delay_until_ms) >= case when p_from_start then 0
                                                                               else coalesce(m.from_ms, 0) end
                   and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
                 order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 1);
        else
            v_first := (
                select c.created_at_ms from ff_exec_core c
                 where c.lane_id = p_lane_id and c.caps_key = p_caps_key and c.priority = m.priority
                   and c.blocking_reason = 'waiting_for_worker'
                   and c.created_at_ms >= case when p_from_start then 0 else coalesce(m.from_ms, 0) end
                 order by c.created_at_ms limit 1);
        end if;
        v_walked := ff__walked() - v_walked;
        v_first := least(v_first, v_latest);
        if p_from_start and v_walked < c_long then
            delete from ff_scan_mark x
             where x.lane_id = p_lane_id and x.caps_key = p_caps_key and x.priority = m.priority;
        elsif p_from_start or v_walked >= c_long then
            perform ff__set_mark(p_lane_id, p_caps_key, m.priority, v_first,
                                 case when p_from_start then v_walked else m.walked + v_walked end);
        end if;
    end loop;
    if p_from_start and not exists (select from ff_scan_mark x where x.lane_id = p_lane_id) then
        update ff_lane_registry l set marked = false
         where l.lane_id = (select x.lane_id from ff_lane_registry x
                             where x.lane_id = p_lane_id and x.marked for update skip locked);
    end if;
end
$$;
