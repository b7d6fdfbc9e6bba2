-- Fires what is due of a schedule that the caller has locked, at most p_limit ticks, and moves it on to its next tick.
-- Returns how many. Errors: as ff_create_execution.
create or replace function ff__fire_due(s ff_schedule, p_now_ms bigint, p_limit int) returns int
language plpgsql volatile
as $$
declare
    c ff_cron := case when s.cron is not null then ff__parse_cron(s.cron) end;
    v_ticks bigint[] := ff__due_ticks(s, c, p_now_ms);
    v_fired int := least(cardinality(v_ticks), p_limit);
    v_next bigint := case when cardinality(v_ticks) > p_limit then v_ticks[p_limit + 1]
                          else ff__tick(s, c, p_now_ms, 1) end;
begin
    for i in 1..v_fired loop
        perform ff__fire(s, v_ticks[i], ff__tick_id(s.schedule_id, v_ticks[i]), null);
    end loop;
    update ff_schedule x set
        next_fire_at_ms = v_next, due_at_ms = v_next,
        fire_count = x.fire_count + v_fired,
        last_fire_at_ms = coalesce(v_ticks[v_fired], x.last_fire_at_ms),
        last_fired_at_ms = case when v_fired > 0 then p_now_ms else x.last_fired_at_ms end,
        last_execution_id = case when v_fired > 0 then ff__tick_id(s.schedule_id, v_ticks[v_fired])
                                 else x.last_execution_id end,
        error_count = 0, last_error = null, last_error_at_ms = null
     where x.schedule_id = s.schedule_id;
    return v_fired;
end
$$;
