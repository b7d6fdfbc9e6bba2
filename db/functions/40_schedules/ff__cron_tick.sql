-- A tick of a cron expression in a time zone: the first after p_at_ms (p_way 1), or the last one at p_at_ms or before
-- (p_way -1). An expression that names hours goes by the clock on the wall: what that shows twice is one tick, what it
-- jumps over is a tick at the jump. One that runs in every hour goes by the minutes that pass, repeated ones included.
create or replace function ff__cron_tick(c ff_cron, p_zone text, p_at_ms bigint, p_way int) returns bigint
language plpgsql immutable
as $$
declare
    c_minute constant bigint := 60000;
    c_near constant bigint := 10800000; -- 3 h: a change of the clock so close is passed minute by minute
    v_local timestamp;
    v_day date;
    v_good date;
    v_ms bigint;
    v_found bigint;
begin
    if cardinality(c.hours) < 24 then
        v_local := ff__wall(p_at_ms, p_zone);
        if p_way < 0 then
            v_local := ff__cron_local(c, v_local, -1);
            v_found := ff__moment(v_local, p_zone);
        end if;
        -- Forward, over times that the clock has shown before and shows again.
        loop
            v_local := ff__cron_local(c, v_local, 1);
            v_ms := ff__moment(v_local, p_zone);
            exit when v_ms is null or v_ms > p_at_ms;
            v_found := v_ms;
        end loop;
        return case when p_way > 0 then v_ms else v_found end;
    end if;

    v_ms := floor(p_at_ms / 60000.0)::bigint * c_minute + case when p_way > 0 then c_minute else 0 end;
    for i in 1..100000 loop
        v_local := ff__wall(v_ms, p_zone);
        if v_day is distinct from v_local::date then
            v_day := v_local::date;
            v_good := ff__cron_day(c, v_day, p_way);
        end if;
        if v_good = v_day then
            if extract(minute from v_local)::int = any (c.minutes) then
                return v_ms;
            end if;
            v_ms := v_ms + p_way * c_minute;
        elsif ff__offset_ms(v_ms, p_zone) <> ff__offset_ms(v_ms + p_way * c_near, p_zone) then
            v_ms := v_ms + p_way * c_minute;
        elsif p_way > 0 then
            v_ms := greatest(v_ms + c_minute, ff__moment(v_good, p_zone));
        else
            v_found := ff__moment(v_good + 1, p_zone);
            v_ms := case when v_ms - v_found > c_near then v_found + c_near else least(v_ms, v_found) - c_minute end;
        end if;
    end loop;
    return null;
end
$$;
