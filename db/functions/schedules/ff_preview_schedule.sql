-- Reads only the clock.
create or replace function ff_preview_schedule(
    p_cron text default null,
    p_interval_ms bigint default null,
    p_time_zone text default 'UTC',
    p_start_at_ms bigint default null,
    p_end_at_ms bigint default null,
    p_limit int default 10
) returns table (fire_at_ms bigint, fire_at_local text)
language plpgsql volatile security definer
as $$
declare
    c ff_cron;
    s ff_schedule;
    v_tick bigint;
begin
    c := ff__check_timing(p_cron, p_interval_ms, p_time_zone, p_start_at_ms, p_end_at_ms);
    perform ff__check_limit(p_limit);
    s.cron := p_cron;
    s.interval_ms := p_interval_ms;
    s.time_zone := p_time_zone;
    s.end_at_ms := p_end_at_ms;
    s.first_at_ms := coalesce(p_start_at_ms, ff__now_ms() + coalesce(p_interval_ms, 1));
    v_tick := s.first_at_ms - 1;
    for i in 1..p_limit loop
        v_tick := ff__next_fire_time(s, c, v_tick, 1);
        exit when v_tick is null;
        fire_at_ms := v_tick;
        fire_at_local := to_char(ff__local_time(v_tick, p_time_zone), 'YYYY-MM-DD HH24:MI:SS');
        return next;
    end loop;
end
$$;

comment on function ff_preview_schedule(text, bigint, text, bigint, bigint, int) is
$$The ticks that a schedule created with these times would have, from its start on.
fire_at_local: the local time in p_time_zone.

Errors: invalid_input, invalid_schedule$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
