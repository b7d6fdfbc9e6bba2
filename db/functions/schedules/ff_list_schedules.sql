create or replace function ff_list_schedules(
    p_lane_id text default null, p_namespace text default null, p_after text default null, p_limit int default 100
)
returns table (
    cursor text, schedule_id text, namespace text, lane_id text, execution_kind text, state text, cron text,
    interval_ms bigint, time_zone text, catch_up text, next_fire_at_ms bigint, last_fire_at_ms bigint,
    last_execution_id text, fire_count bigint, error_count int, last_error text
)
language plpgsql stable security definer
as $$
begin
    perform ff__check_limit(p_limit);
    if p_lane_id is not null then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;
    if octet_length(p_after) not between 1 and 256 or p_after ~ E'[\\x01-\\x1f\\x7f]' then
        perform ff__raise('invalid_cursor', 'not a cursor of this list',
                          jsonb_build_object('cursor', left(p_after, 80)));
    end if;
    return query
        select s.schedule_id, s.schedule_id, s.namespace, s.lane_id, s.execution_kind, ff__schedule_state(s), s.cron,
               s.interval_ms, s.time_zone, s.catch_up, s.next_fire_at_ms, s.last_fire_at_ms,
               ff__wire_id(ff__partition(s.last_execution_id), s.last_execution_id), s.fire_count, s.error_count,
               s.last_error
          from ff_schedule s
         where (p_lane_id is null or s.lane_id = p_lane_id) and (p_namespace is null or s.namespace = p_namespace)
           and (p_after is null or s.schedule_id > p_after)
         order by s.schedule_id limit p_limit;
end
$$;

comment on function ff_list_schedules(text, text, text, int) is
$$The schedules in order of id, of one lane or namespace or all, with their next tick and last execution. p_after: the
cursor of the last row read. error_count counts the failures since the last success, last_error is the latest of them.

Outcomes: state = active | paused | ended
Outcomes: catch_up = skip | latest | all
Nullable: cron, interval_ms, next_fire_at_ms, last_fire_at_ms, last_execution_id, last_error
Errors: invalid_input, invalid_lane_id, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
