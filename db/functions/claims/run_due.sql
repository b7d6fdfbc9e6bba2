-- Runs due work when a claim of a lane found nothing: dispatches pending completions of flow members, fires schedules
-- that are due, and unparks executions of the lane whose policy or budget has capacity. True: the claim must look
-- again. Never waits. Four index probes if nothing is due.
create or replace function ff__run_due(p_lane_id text) returns boolean
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms(); -- a variable, because a volatile call in the probes would prevent index scans
    v_again boolean := false;
begin
    if exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms <= v_now)
       or exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms > v_now + 60000) -- see ff__backed_off_ends
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
                                     where c.queue_id = q.queue_id and c.due_at_ms = ff__max_time_ms() limit 1) x
                where q.lane_id = p_lane_id and q.limited)
    then
        v_again := (@extschema@.ff_sweep_admissions(200, p_lane_id)).processed > 0 or v_again;
    end if;
    return v_again;
end
$$;
