-- The first minute by the clock on the wall that a cron expression allows: after p_local (p_way 1), or at p_local or
-- before (p_way -1).
create or replace function ff__cron_local(c ff_cron, p_local timestamp, p_way int) returns timestamp
language plpgsql immutable
as $$
declare
    v_from timestamp := date_trunc('minute', p_local) + case when p_way > 0 then interval '1 minute'
                                                             else interval '0' end;
    v_day date := ff__cron_day(c, v_from::date, p_way);
    v_hour int := extract(hour from v_from);
    v_minute int := extract(minute from v_from);
    v_found int;
begin
    if v_day = v_from::date then
        if v_hour = any (c.hours) then
            select case when p_way > 0 then min(m.n) else max(m.n) end into v_found from unnest(c.minutes) m(n)
             where sign(m.n - v_minute) <> - p_way;
            if v_found is not null then
                return v_day + make_interval(hours => v_hour, mins => v_found);
            end if;
        end if;
        select case when p_way > 0 then min(h.n) else max(h.n) end into v_found from unnest(c.hours) h(n)
         where sign(h.n - v_hour) = p_way;
        if v_found is null then
            v_day := ff__cron_day(c, v_day + p_way, p_way);
        end if;
    end if;
    return v_day + case when p_way > 0 then make_interval(hours => coalesce(v_found, c.hours[1]), mins => c.minutes[1])
                        else make_interval(hours => coalesce(v_found, c.hours[cardinality(c.hours)]),
                                           mins => c.minutes[cardinality(c.minutes)]) end;
end
$$;
