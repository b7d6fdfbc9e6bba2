-- When a schedule fires: one of cron and interval, a time zone, a start and an end. Returns the cron expression, taken
-- apart. Errors: invalid_input, invalid_schedule.
create or replace function ff__check_timing(
    p_cron text, p_interval_ms bigint, p_time_zone text, p_start_at_ms bigint, p_end_at_ms bigint
) returns ff_cron
language plpgsql stable
as $$
declare
    c_longest constant bigint := 315576000000; -- ten years
    c ff_cron;
begin
    if num_nonnulls(p_cron, p_interval_ms) <> 1 then
        perform ff__invalid('p_cron', 'or p_interval_ms must be given, and not both');
    elsif p_interval_ms not between 1000 and c_longest then
        perform ff__invalid('p_interval_ms', format('must be between 1000 and %s', c_longest),
                            jsonb_build_object('value', p_interval_ms));
    end if;
    perform ff__check_zone(p_time_zone);
    perform ff__check_time('p_start_at_ms', p_start_at_ms);
    perform ff__check_time('p_end_at_ms', p_end_at_ms);
    if p_cron is not null then
        c := ff__parse_cron(p_cron);
    end if;
    return c;
end
$$;
