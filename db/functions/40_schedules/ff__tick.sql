-- A tick of a schedule: the first after p_at_ms (p_way 1), or the last one at p_at_ms or before (p_way -1); NULL if
-- there is none between its start and its end, or ff__last_ms. c is its cron expression, taken apart by the caller once.
create or replace function ff__tick(s ff_schedule, c ff_cron, p_at_ms bigint, p_way int) returns bigint
language plpgsql immutable
as $$
declare
    v_at bigint := case when p_way > 0 then greatest(p_at_ms, s.first_at_ms - 1)
                        else least(p_at_ms, s.end_at_ms - 1) end;
    v_tick bigint;
begin
    if p_way < 0 and v_at < s.first_at_ms then
        return null;
    elsif s.cron is not null then
        v_tick := ff__cron_tick(c, s.time_zone, v_at, p_way);
    elsif v_at < s.first_at_ms then
        v_tick := s.first_at_ms;
    else
        v_tick := s.first_at_ms
                  + ((v_at - s.first_at_ms) / s.interval_ms + case when p_way > 0 then 1 else 0 end) * s.interval_ms;
    end if;
    return case when v_tick >= s.first_at_ms and v_tick <= ff__last_ms()
                     and (s.end_at_ms is null or v_tick < s.end_at_ms) then v_tick end;
end
$$;
