-- The first day that a cron expression allows, from p_day on (p_way 1) or back (p_way -1). Whole months are passed
-- over.
create or replace function ff__cron_day(c ff_cron, p_day date, p_way int) returns date
language plpgsql immutable
as $$
declare
    v_day date := p_day;
    v_in_month boolean;
    v_in_week boolean;
begin
    -- 29 February on one weekday is the rarest: once in 40 years at worst.
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
