-- The first day that a cron expression allows, from p_day on (p_way 1) or back (p_way -1). Skips whole months.
create or replace function ff__cron_day(c ff_cron, p_day date, p_way int) returns date
language plpgsql immutable
as $$
declare
    v_day date := p_day;
    v_in_month boolean;
    v_in_week boolean;
begin
    -- The rarest match is 29 February on one weekday: once in 40 years at worst.
    for i in 1..5000 loop
        if extract(month from v_day)::int <> all (c.months) then
            v_day := case when p_way > 0 then date_trunc('month', v_day::timestamp) + interval '1 month'
                          else date_trunc('month', v_day::timestamp) - interval '1 day' end;
            continue;
        end if;
        v_in_month := extract(day from v_day)::int = any (c.days);
        v_in_week := extract(dow from v_day)::int = any (c.weekdays);
        if (v_in_month and v_in_week) or (c.either and (v_in_month or v_in_week)) then
            return v_day;
        end if;
        v_day := v_day + p_way;
    end loop;
    return null;
end
$$;

-- A tick of a cron expression in a time zone: the first after p_at_ms (p_way 1), or the last one at p_at_ms or before
-- (p_way -1). An expression that restricts hours follows local time: a local time that occurs twice is one tick, a
-- skipped one is a tick at the jump. One that runs in every hour follows elapsed minutes, repeated ones included.
create or replace function ff__next_cron_time(c ff_cron, p_zone text, p_at_ms bigint, p_way int) returns bigint
language plpgsql immutable
as $$
declare
    c_minute constant bigint := 60000;
    c_near constant bigint := 10800000; -- 3 h: within this distance of a UTC offset change, step by minutes
    v_local timestamp;
    v_day date;
    v_good date;
    v_ms bigint;
    v_found bigint;
begin
    if cardinality(c.hours) < 24 then
        v_local := ff__local_time(p_at_ms, p_zone);
        if p_way < 0 then
            v_local := ff__cron_local(c, v_local, -1);
            v_found := ff__local_to_instant(v_local, p_zone);
        end if;
        -- Forward, skipping repeated local times.
        loop
            v_local := ff__cron_local(c, v_local, 1);
            v_ms := ff__local_to_instant(v_local, p_zone);
            exit when v_ms is null or v_ms > p_at_ms;
            v_found := v_ms;
        end loop;
        return case when p_way > 0 then v_ms else v_found end;
    end if;

    v_ms := floor(p_at_ms / 60000.0)::bigint * c_minute + case when p_way > 0 then c_minute else 0 end;
    for i in 1..100000 loop
        v_local := ff__local_time(v_ms, p_zone);
        if v_day is distinct from v_local::date then
            v_day := v_local::date;
            v_good := ff__cron_day(c, v_day, p_way);
        end if;
        if v_good = v_day then
            if extract(minute from v_local)::int = any (c.minutes) then
                return v_ms;
            end if;
            v_ms := v_ms + p_way * c_minute;
        elsif ff__utc_offset_ms(v_ms, p_zone) <> ff__utc_offset_ms(v_ms + p_way * c_near, p_zone) then
            v_ms := v_ms + p_way * c_minute;
        elsif p_way > 0 then
            v_ms := greatest(v_ms + c_minute, ff__local_to_instant(v_good, p_zone));
        else
            v_found := ff__local_to_instant(v_good + 1, p_zone);
            v_ms := case when v_ms - v_found > c_near then v_found + c_near else least(v_ms, v_found) - c_minute end;
        end if;
    end loop;
    return null;
end
$$;

-- The first minute in local time that a cron expression allows: after p_local (p_way 1), or at p_local or
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

-- The first instant at which local time is p_local or later. For a local time that occurs twice: the first of the two;
-- for a skipped one: the instant of the jump.
create or replace function ff__local_to_instant(p_local timestamp, p_zone text) returns bigint
language plpgsql immutable
as $$
declare
    c_far constant bigint := 93600000; -- 26 h: longer than any jump, including one over the date line
    v_local bigint := extract(epoch from p_local) * 1000;
    v_guess bigint := extract(epoch from p_local at time zone p_zone) * 1000;
    v_low bigint;
    v_high bigint;
    v_middle bigint;
begin
    v_low := v_local - ff__utc_offset_ms(v_guess - c_far, p_zone);
    v_high := v_local - ff__utc_offset_ms(v_guess + c_far, p_zone);
    if v_low = v_guess and v_high = v_guess then
        return v_guess;
    end if;
    for v_middle in select x.ms from unnest(array[v_low, v_guess, v_high]) x(ms) order by x.ms loop
        if ff__local_time(v_middle, p_zone) = p_local then
            return v_middle;
        end if;
    end loop;
    -- Skipped: the jump is between the instants by the two offsets.
    select min(x.ms), max(x.ms) into v_low, v_high from unnest(array[v_low, v_guess, v_high]) x(ms);
    while v_high - v_low > 1000 loop
        v_middle := v_low + (v_high - v_low) / 2000 * 1000;
        if ff__local_time(v_middle, p_zone) >= p_local then
            v_high := v_middle;
        else
            v_low := v_middle;
        end if;
    end loop;
    return v_high;
end
$$;

-- The UTC offset of a time zone at an instant, in milliseconds.
create or replace function ff__utc_offset_ms(p_ms bigint, p_zone text) returns bigint
language sql immutable
as $$
    select (extract(epoch from ff__local_time(p_ms, p_zone)) * 1000)::bigint - p_ms
$$;

-- Parses a cron expression: five fields or one of the @ names. As in cron, when both day fields are restricted (they do
-- not start with *) a day matches if one of them does, else it must match both. Errors: invalid_schedule.
create or replace function ff__parse_cron(p_cron text) returns ff_cron
language plpgsql stable
as $$
declare
    v_text text := btrim(p_cron, E' \t');
    v_fields text[];
    c ff_cron;
begin
    if octet_length(p_cron) > 1000 then
        perform ff__raise_invalid_schedule('cron', p_cron, 'must have at most 1000 bytes');
    elsif v_text like '@%' then
        v_text := case lower(v_text collate "C")
                      when '@yearly' then '0 0 1 1 *'
                      when '@annually' then '0 0 1 1 *'
                      when '@monthly' then '0 0 1 * *'
                      when '@weekly' then '0 0 * * 0'
                      when '@daily' then '0 0 * * *'
                      when '@midnight' then '0 0 * * *'
                      when '@hourly' then '0 * * * *' end;
        if v_text is null then
            perform ff__raise_invalid_schedule(
                'cron', p_cron, 'the names are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly');
        end if;
    end if;
    v_fields := regexp_split_to_array(v_text, E'[ \t]+');
    if cardinality(v_fields) <> 5 then
        perform ff__raise_invalid_schedule('cron', p_cron,
                                           'must have five fields: minute, hour, day of month, month, day of week');
    end if;
    c.minutes := ff__cron_field('minute', v_fields[1], 0, 59);
    c.hours := ff__cron_field('hour', v_fields[2], 0, 23);
    c.days := ff__cron_field('day of month', v_fields[3], 1, 31);
    c.months := ff__cron_field('month', v_fields[4], 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
    c.weekdays := ff__cron_field('day of week', v_fields[5], 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
    -- Sunday is 0 and 7.
    c.weekdays := array(select distinct d.n % 7 from unnest(c.weekdays) d(n) order by 1);
    c.either := v_fields[3] not like '*%' and v_fields[5] not like '*%';
    if not c.either and not exists (select from unnest(c.months) m(n)
                                     where c.days[1] <= case when m.n = 2 then 29
                                                             when m.n in (4, 6, 9, 11) then 30 else 31 end) then
        perform ff__raise_invalid_schedule('day of month', v_fields[3], 'no such day in any of the months');
    end if;
    return c;
end
$$;

-- The values allowed by one field of a cron expression, in order: lists of *, a, a-b, with /step after * or a range.
-- p_names are names for p_min and the following values. Errors: invalid_schedule.
create or replace function ff__cron_field(
    p_field text, p_value text, p_min int, p_max int, p_names text[] default '{}'
) returns int[]
language plpgsql stable
as $$
declare
    v_item text;
    v_parts text[];
    v_ends int[];
    v_end text;
    v_step int;
    v_found int[] := '{}'::int[];
begin
    foreach v_item in array string_to_array(lower(p_value collate "C"), ',') loop
        v_parts := regexp_match(v_item, E'^(\\*|[0-9]{1,4}|[a-z]{3})(-([0-9]{1,4}|[a-z]{3}))?(/([0-9]{1,4}))?$');
        if v_parts is null or (v_parts[1] = '*' and v_parts[2] is not null) then
            perform ff__raise_invalid_schedule(
                p_field, v_item, 'only numbers, names, ranges a-b, lists a,b and steps */n or a-b/n are understood');
        elsif v_parts[4] is not null and v_parts[1] <> '*' and v_parts[2] is null then
            perform ff__raise_invalid_schedule(p_field, v_item, 'a step needs a range or * before it');
        end if;
        v_step := coalesce(v_parts[5]::int, 1);
        if v_step = 0 then
            perform ff__raise_invalid_schedule(p_field, v_item, 'the step must be 1 or more');
        end if;
        v_ends := '{}';
        foreach v_end in array array[v_parts[1], coalesce(v_parts[3], v_parts[1])] loop
            if v_end = '*' then
                v_ends := array[p_min, p_max];
            elsif v_end ~ '^[0-9]' then
                v_ends := v_ends || v_end::int;
            elsif array_position(p_names, v_end) is not null then
                v_ends := v_ends || p_min + array_position(p_names, v_end) - 1;
            else
                perform ff__raise_invalid_schedule(p_field, v_item, format('%s is no name that this field has', v_end));
            end if;
        end loop;
        if v_ends[1] not between p_min and p_max or v_ends[2] not between p_min and p_max then
            perform ff__raise_invalid_schedule(p_field, v_item, format('must be between %s and %s', p_min, p_max));
        elsif v_ends[1] > v_ends[2] then
            perform ff__raise_invalid_schedule(p_field, v_item, 'the range ends before it begins');
        end if;
        v_found := v_found || array(select g.n from generate_series(v_ends[1], v_ends[2], v_step) g(n));
    end loop;
    return array(select distinct f.n from unnest(v_found) f(n) order by f.n);
end
$$;

-- Local time in a time zone at an instant.
create or replace function ff__local_time(p_ms bigint, p_zone text) returns timestamp
language sql immutable
as $$
    select (timestamp 'epoch' + p_ms * interval '1 millisecond') at time zone 'UTC' at time zone p_zone
$$;
