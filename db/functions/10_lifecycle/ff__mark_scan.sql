-- After a walk over many entries, which may have been dead or locked by others: moves the marks of a lane's capability set up, and makes one for p_priority, where
-- the walk ended (see ff_scan_mark). With p_from_start it looks behind the marks instead: moves back one that has passed
-- something, drops one that is no longer needed. A mark stays behind the clock, for those who have written and not yet
-- committed. Locks nothing but the lane's row, and never waits.
create or replace function ff__mark_scan(p_lane_id text, p_caps_key text, p_priority int, p_from_start boolean default false)
returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_latest bigint;
    v_first bigint;
    v_id uuid;
    v_walked bigint;
    m record;
begin
    for m in
        select x.priority, x.from_ms, x.from_id, x.looked_ms, x.walked from ff__marks(p_lane_id, p_caps_key) x
        union all
        select y.priority, 0, '00000000-0000-0000-0000-000000000000', v_now, 0
          from unnest(array[p_priority, case when p_caps_key = '' then -1 end]) y(priority)
         where y.priority is not null
           and y.priority not in (select z.priority from ff__marks(p_lane_id, p_caps_key) z)
    loop
        v_latest := v_now - case when m.priority = -1 then 100 else 1000 end;
        v_walked := ff__walked();
        if m.priority = -1 then
            select coalesce(c.lease_check_at_ms, c.delay_until_ms), null::uuid into v_first, v_id from ff_exec_core c
             where c.lane_id = p_lane_id
               and coalesce(c.lease_check_at_ms, c.delay_until_ms) >= case when p_from_start then 0 else m.from_ms end
               and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
             order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 1;
        else
            select c.created_at_ms, c.execution_id into v_first, v_id from ff_exec_core c
             where c.lane_id = p_lane_id and not c.limited and c.caps_key = p_caps_key and c.priority = m.priority
               and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
               and (c.created_at_ms, c.execution_id) >= (case when p_from_start then 0 else m.from_ms end, m.from_id)
             order by c.created_at_ms, c.execution_id limit 1;
        end if;
        v_walked := ff__walked() - v_walked;
        if v_first is null or v_first > v_latest then
            v_first := v_latest;
            v_id := null;
        end if;
        if p_from_start and v_walked < 5000 then
            perform ff__drop_marks(p_lane_id, p_caps_key, m.priority, 9223372036854775807);
        elsif p_from_start then
            perform ff__set_mark(p_lane_id, p_caps_key, m.priority, v_first, v_id, v_now, v_walked);
        elsif v_walked >= (case when m.walked = 0 then 10000 else 300 end) and v_first > m.from_ms then
            perform ff__set_mark(p_lane_id, p_caps_key, m.priority, v_first, v_id, m.looked_ms, m.walked + v_walked);
        end if;
    end loop;
    if p_from_start and not exists (select from ff_scan_mark x where x.lane_id = p_lane_id) then
        update ff_lane_registry l set marked = false
         where l.lane_id = (select x.lane_id from ff_lane_registry x
                             where x.lane_id = p_lane_id and x.marked for update skip locked);
    end if;
end
$$;
