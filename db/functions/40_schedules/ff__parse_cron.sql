-- Takes a cron expression apart: five fields or one of the @ names. As in cron, when both day fields are restricted
-- (they do not start with *) a day matches if one of them does, else it must match both. Errors: invalid_schedule.
create or replace function ff__parse_cron(p_cron text) returns ff_cron
language plpgsql stable
as $$
declare
    v_text text := btrim(p_cron, E' \t');
    v_fields text[];
    c ff_cron;
begin
    if octet_length(p_cron) > 1000 then
        perform ff__invalid_schedule('cron', p_cron, 'must have at most 1000 bytes');
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
            perform ff__invalid_schedule(
                'cron', p_cron, 'the names are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly');
        end if;
    end if;
    v_fields := regexp_split_to_array(v_text, E'[ \t]+');
    if cardinality(v_fields) <> 5 then
        perform ff__invalid_schedule('cron', p_cron,
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
        perform ff__invalid_schedule('day of month', v_fields[3], 'no such day in any of the months');
    end if;
    return c;
end
$$;
