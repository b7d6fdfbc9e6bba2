-- Checks the id of a schedule: 1 to 256 bytes without control characters. Errors: invalid_input.
create or replace function ff__check_schedule_id(p_schedule_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_schedule_id', p_schedule_id, 1, 256);
end
$$;

-- Checks the times of a schedule: one of cron and interval, a time zone, a start and an end. Returns the parsed cron
-- expression. Errors: invalid_input, invalid_schedule.
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

-- Checks a time zone: a name in the server's list (abbreviations and POSIX rules have no lasting daylight saving
-- rules). CET, EST and the like are names too, but AT TIME ZONE reads them as abbreviations, which depend on the
-- session. Errors: invalid_input (NULL), invalid_schedule.
create or replace function ff__check_zone(p_zone text) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_time_zone', p_zone, 1, 64);
    -- The lists are read from files: skipped for UTC, zones in use, and texts that cannot be a name.
    if p_zone in ('UTC', 'GMT') or exists (select from ff_schedule s where s.time_zone = p_zone) then
        return;
    elsif p_zone !~ '^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$'
          or not exists (select from pg_timezone_names n where n.name = p_zone)
    then
        perform ff__raise_invalid_schedule('time_zone', p_zone,
                                           'is not the name of a time zone, such as Europe/Berlin');
    elsif exists (select from pg_timezone_abbrevs a where a.abbrev = upper(p_zone)) then
        perform ff__raise_invalid_schedule('time_zone', p_zone,
                                           'is an abbreviation of one offset: name the place, such as Europe/Berlin');
    end if;
end
$$;

-- Creates an execution of a schedule: with the id of a tick (p_id), or a new one. A tick that has or had its execution
-- gets no second one. Errors: as ff_create_execution.
create or replace function ff__fire(
    s ff_schedule,
    p_fire_at_ms bigint,
    p_id uuid,
    p_idempotency_key text,
    out outcome text,
    out execution_id text
)
language plpgsql volatile
as $$
begin
    execution_id := ff__wire_id(ff__partition(p_id), p_id);
    if p_id is not null and (exists (select from ff_execution c where c.execution_id = p_id)
                             or ff__is_id_in_use(p_id)) then
        outcome := 'duplicate';
        return;
    end if;
    select x.outcome, x.execution_id into outcome, execution_id
      from @extschema@.ff_create_execution(
               p_lane_id => s.lane_id, p_execution_kind => s.execution_kind, p_payload => s.payload,
               p_idempotency_key => p_idempotency_key, p_priority => s.priority, p_policy => s.policy,
               p_tags => s.tags || jsonb_build_object('schedule.id', s.schedule_id,
                                                      'schedule.fire_at_ms', p_fire_at_ms::text),
               p_required_capabilities => s.required_capabilities, p_namespace => s.namespace,
               p_execution_id => ff__fire.execution_id, p_payload_encoding => s.payload_encoding,
               p_creator => s.creator) x;
end
$$;

-- Raises invalid_schedule: the field, its value, and what is wrong with it.
create or replace function ff__raise_invalid_schedule(p_field text, p_value text, p_reason text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_schedule', format('%s "%s": %s', p_field, left(p_value, 80), p_reason),
                      jsonb_build_object('field', p_field, 'value', left(p_value, 80), 'reason', p_reason));
end
$$;

-- Locks a schedule (waits for it). Errors: invalid_input, schedule_not_found.
create or replace function ff__lock_schedule(p_schedule_id text) returns ff_schedule
language plpgsql volatile
as $$
declare
    s ff_schedule;
begin
    perform ff__check_schedule_id(p_schedule_id);
    select x.* into s from ff_schedule x where x.schedule_id = p_schedule_id for update;
    if not found then
        perform ff__raise('schedule_not_found', format('there is no schedule %s', p_schedule_id),
                          jsonb_build_object('schedule_id', p_schedule_id));
    end if;
    return s;
end
$$;

-- The state of a schedule in one word.
create or replace function ff__schedule_state(s ff_schedule) returns text
language plpgsql immutable
as $$
begin
    return case when s.next_fire_at_ms is null then 'ended'
                when s.paused_at_ms is not null then 'paused'
                else 'active' end;
end
$$;

-- A tick of a schedule: the first after p_at_ms (p_way 1), or the last one at p_at_ms or before (p_way -1); NULL if
-- there is none between its start and its end, or ff__max_time_ms. c is its cron expression, parsed once by the caller.
create or replace function ff__next_fire_time(s ff_schedule, c ff_cron, p_at_ms bigint, p_way int) returns bigint
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
        v_tick := ff__next_cron_time(c, s.time_zone, v_at, p_way);
    elsif v_at < s.first_at_ms then
        v_tick := s.first_at_ms;
    else
        v_tick := s.first_at_ms
                  + ((v_at - s.first_at_ms) / s.interval_ms + case when p_way > 0 then 1 else 0 end) * s.interval_ms;
    end if;
    return case when v_tick >= s.first_at_ms and v_tick <= ff__max_time_ms()
                     and (s.end_at_ms is null or v_tick < s.end_at_ms) then v_tick end;
end
$$;
