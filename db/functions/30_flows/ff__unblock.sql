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
    if exists (select from ff_queue q
                cross join lateral (select from ff_execution c
                                     where c.queue_id = q.queue_id and c.due_at_ms = ff__last_ms() limit 1) x
                where q.lane_id = p_lane_id and q.limited)
    then
        v_again := (@extschema@.ff_sweep_admissions(200, p_lane_id)).processed > 0 or v_again;
    end if;
    return v_again;
end
$$;
