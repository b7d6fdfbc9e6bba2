-- A claim of a lane found nothing: passes on ends of flow members that nobody has passed on yet, fires schedules that are
-- due, and lets go what waits on the lane for a policy or budget that has room, if there is any of it. True: look again.
-- Never waits. Four index probes when there is nothing to do.
create or replace function ff__unblock(p_lane_id text) returns boolean
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms(); -- a volatile call would keep the probes out of the index
    v_again boolean := false;
begin
    if exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms <= v_now)
       or exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms > v_now + 60000) -- see ff__put_off_ends
    then
        perform @extschema@.ff_dispatch_completions(50);
        v_again := true;
    end if;
    if exists (select from ff_schedule s where s.due_at_ms <= v_now) then
        perform @extschema@.ff_fire_schedules(50);
        v_again := true;
    end if;
    if exists (select from ff_lane_registry l where l.lane_id = p_lane_id and l.limited)
       and exists (select from ff_exec_core c
                    where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) is null
                      and c.eligibility_state in ('blocked_by_quota', 'blocked_by_budget'))
    then
        v_again := (@extschema@.ff_sweep_admissions(200, p_lane_id)).processed > 0 or v_again;
    end if;
    return v_again;
end
$$;
