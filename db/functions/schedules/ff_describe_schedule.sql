create or replace function ff_describe_schedule(p_schedule_id text)
returns table (
    schedule_id text, namespace text, lane_id text, execution_kind text, state text, cron text, interval_ms bigint,
    time_zone text, catch_up text, max_catch_up int, grace_ms bigint, start_at_ms bigint, end_at_ms bigint,
    payload bytea, payload_encoding text, priority int, policy jsonb, tags jsonb, required_capabilities text[],
    creator text, next_fire_at_ms bigint, due_at_ms bigint, fire_count bigint, last_fire_at_ms bigint,
    last_fired_at_ms bigint, last_execution_id text, error_count int, last_error text, last_error_at_ms bigint,
    paused_at_ms bigint, paused_reason text, created_at_ms bigint, updated_at_ms bigint
)
language plpgsql stable security definer rows 1
as $$
begin
    perform ff__check_schedule_id(p_schedule_id);
    return query
        select s.schedule_id, s.namespace, s.lane_id, s.execution_kind, ff__schedule_state(s), s.cron, s.interval_ms,
               s.time_zone, s.catch_up, s.max_catch_up, s.grace_ms, s.start_at_ms, s.end_at_ms, s.payload,
               s.payload_encoding, s.priority, s.policy, s.tags, s.required_capabilities, s.creator, s.next_fire_at_ms,
               s.due_at_ms, s.fire_count, s.last_fire_at_ms, s.last_fired_at_ms,
               ff__wire_id(ff__partition(s.last_execution_id), s.last_execution_id), s.error_count, s.last_error,
               s.last_error_at_ms, s.paused_at_ms, s.paused_reason, s.created_at_ms, s.updated_at_ms
          from ff_schedule s where s.schedule_id = p_schedule_id;
end
$$;

comment on function ff_describe_schedule(text) is
$$All attributes of one schedule; no row if there is none. next_fire_at_ms: its next tick; due_at_ms: when that is
tried, later than the tick after a failure, null while it is paused or has ended. last_fire_at_ms: the last tick that
was fired; last_fired_at_ms: when it was fired.

Rows: at most one
Outcomes: state = active | paused | ended
Outcomes: catch_up = skip | latest | all
Nullable: cron, interval_ms, start_at_ms, end_at_ms, payload, payload_encoding, priority, next_fire_at_ms, due_at_ms
Nullable: last_fire_at_ms, last_fired_at_ms, last_execution_id, last_error, last_error_at_ms, paused_at_ms
Nullable: paused_reason
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
