-- Locks: the schedule (waits for a concurrent call with the same id), the lane if it changes. Replay: the same
-- definition returns already_satisfied and changes nothing.
create or replace function ff_create_schedule(
    p_schedule_id text,
    p_lane_id text,
    p_cron text default null,
    p_interval_ms bigint default null,
    p_time_zone text default 'UTC',
    p_catch_up text default 'latest',
    p_payload bytea default null,
    p_payload_encoding text default null,
    p_execution_kind text default '',
    p_priority int default null,
    p_policy jsonb default '{}',
    p_tags jsonb default '{}',
    p_required_capabilities text[] default '{}',
    p_namespace text default 'default',
    p_start_at_ms bigint default null,
    p_end_at_ms bigint default null,
    p_max_catch_up int default 100,
    p_grace_ms bigint default 60000,
    p_creator text default '',
    p_replace boolean default false,
    out outcome text,
    out schedule_id text,
    out next_fire_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_retimed boolean;
    v_call ff_submission;
    c ff_cron;
    n ff_schedule; -- new definition
    s ff_schedule; -- stored row
begin
    perform ff__check_schedule_id(p_schedule_id);
    perform ff__check_lane_id(p_lane_id);
    c := ff__check_timing(p_cron, p_interval_ms, p_time_zone, p_start_at_ms, p_end_at_ms);
    if p_catch_up is null or p_catch_up not in ('skip', 'latest', 'all') then
        perform ff__invalid('p_catch_up', 'must be one of skip, latest, all');
    elsif p_max_catch_up is null or p_max_catch_up not between 1 and 1000 then
        perform ff__invalid('p_max_catch_up', 'must be between 1 and 1000',
                            jsonb_build_object('value', p_max_catch_up));
    elsif p_grace_ms is null or p_grace_ms not between 1000 and 86400000 then
        perform ff__invalid('p_grace_ms', 'must be between 1000 and 86400000', jsonb_build_object('value', p_grace_ms));
    elsif p_replace is null then
        perform ff__invalid('p_replace', 'must not be null');
    end if;
    perform ff__check_tags('p_tags', p_tags);
    if exists (select from jsonb_object_keys(p_tags) t(key) where t.key like 'schedule.%') then
        perform ff__invalid('p_tags', 'must leave the keys schedule.* to the engine');
    elsif (select count(*) from jsonb_object_keys(p_tags)) > 62 then
        perform ff__invalid('p_tags', 'has more than 62 tags; two are added');
    end if;
    -- Checks that every firing would fail.
    perform ff__check_size('max_execution_bytes', 'payload', p_payload);
    v_call := ff__check_submission(p_lane_id, p_execution_kind, p_priority, p_policy, p_tags, p_required_capabilities,
                                   null, null, null, p_namespace, p_payload_encoding, p_creator, v_now);

    n.schedule_id := p_schedule_id;
    n.lane_id := p_lane_id;
    n.cron := p_cron;
    n.interval_ms := p_interval_ms;
    n.time_zone := p_time_zone;
    n.catch_up := p_catch_up;
    n.payload := p_payload;
    n.payload_encoding := p_payload_encoding;
    n.execution_kind := p_execution_kind;
    n.priority := p_priority;
    n.policy := p_policy;
    n.tags := p_tags;
    n.required_capabilities := p_required_capabilities;
    n.namespace := p_namespace;
    n.start_at_ms := p_start_at_ms;
    n.end_at_ms := p_end_at_ms;
    n.max_catch_up := p_max_catch_up;
    n.grace_ms := p_grace_ms;
    n.creator := p_creator;
    n.fire_count := 0;
    n.error_count := 0;
    loop
        select x.* into s from ff_schedule x where x.schedule_id = p_schedule_id for update;
        exit when found;
        v_now := ff__now_ms();
        n.created_at_ms := v_now;
        n.updated_at_ms := v_now;
        -- Without a start, ticks begin after now; the first tick of an interval is one interval from now.
        n.first_at_ms := coalesce(p_start_at_ms, v_now + coalesce(p_interval_ms, 1));
        n.next_fire_at_ms := ff__next_fire_time(n, c, n.first_at_ms - 1, 1);
        n.due_at_ms := n.next_fire_at_ms;
        if n.next_fire_at_ms is null then
            perform ff__raise_invalid_schedule('end_at_ms', p_end_at_ms::text, 'there is no tick before the end');
        end if;
        insert into ff_schedule select n.* on conflict do nothing;
        if found then
            perform ff__schedule_queue(v_call, v_now);
            outcome := 'created';
            schedule_id := p_schedule_id;
            next_fire_at_ms := n.next_fire_at_ms;
            return;
        end if;
    end loop;

    v_now := ff__now_ms();
    schedule_id := p_schedule_id;
    next_fire_at_ms := s.next_fire_at_ms;
    v_retimed := (s.cron, s.interval_ms, s.time_zone, s.start_at_ms, s.end_at_ms)
                 is distinct from (n.cron, n.interval_ms, n.time_zone, n.start_at_ms, n.end_at_ms);
    if not v_retimed
       and (s.lane_id, s.catch_up, s.payload, s.payload_encoding, s.execution_kind, s.priority, s.policy, s.tags,
            s.required_capabilities, s.namespace, s.max_catch_up, s.grace_ms, s.creator)
           is not distinct from
           (n.lane_id, n.catch_up, n.payload, n.payload_encoding, n.execution_kind, n.priority, n.policy, n.tags,
            n.required_capabilities, n.namespace, n.max_catch_up, n.grace_ms, n.creator)
    then
        outcome := 'already_satisfied';
        return;
    elsif not p_replace then
        perform ff__raise('schedule_conflict', format('schedule %s exists with another definition', p_schedule_id),
                          jsonb_build_object('schedule_id', p_schedule_id));
    end if;
    outcome := 'replaced';
    n.first_at_ms := s.first_at_ms;
    if v_retimed then
        -- New ticks begin now: old ones are not caught up, and none is fired twice.
        n.first_at_ms := coalesce(p_start_at_ms, v_now + coalesce(p_interval_ms, 1));
        next_fire_at_ms := ff__next_fire_time(n, c, greatest(v_now, s.last_fire_at_ms), 1);
        if next_fire_at_ms is null then
            perform ff__raise_invalid_schedule('end_at_ms', p_end_at_ms::text, 'there is no tick before the end');
        end if;
    end if;
    perform ff__schedule_queue(v_call, v_now);
    update ff_schedule x set
        lane_id = n.lane_id, cron = n.cron, interval_ms = n.interval_ms, time_zone = n.time_zone, catch_up = n.catch_up,
        payload = n.payload, payload_encoding = n.payload_encoding, execution_kind = n.execution_kind,
        priority = n.priority, policy = n.policy, tags = n.tags, required_capabilities = n.required_capabilities,
        namespace = n.namespace, start_at_ms = n.start_at_ms, end_at_ms = n.end_at_ms, first_at_ms = n.first_at_ms,
        max_catch_up = n.max_catch_up, grace_ms = n.grace_ms, creator = n.creator,
        next_fire_at_ms = ff_create_schedule.next_fire_at_ms,
        due_at_ms = case when x.paused_at_ms is null then ff_create_schedule.next_fire_at_ms end,
        error_count = 0, last_error = null, last_error_at_ms = null, updated_at_ms = v_now
     where x.schedule_id = p_schedule_id;
end
$$;

comment on function ff_create_schedule(text, text, text, bigint, text, text, bytea, text, text, int, jsonb, jsonb,
                                       text[], text, bigint, bigint, int, bigint, text, boolean) is
$$Creates a schedule: at each tick an execution is created, with the arguments given here and the tags schedule.id and
schedule.fire_at_ms. One of p_cron (five fields or @hourly, @daily, ..; in local time of p_time_zone) and p_interval_ms
(counted from the start). p_start_at_ms, p_end_at_ms: ticks are from the first on, before the second; with a start in
the past the ticks since then count as missed. p_catch_up, for ticks that were not fired in time: skip (dropped if older
than p_grace_ms), latest (one execution for all of them), all (one for each of the last p_max_catch_up). The same
definition again returns already_satisfied. Another one is rejected, or with p_replace replaces it: a change of its
times applies from now on, and a paused schedule stays paused.

Outcomes: outcome = created | already_satisfied | replaced
Nullable: next_fire_at_ms
Errors: invalid_input, payload_too_large, invalid_lane_id, invalid_schedule, invalid_policy, invalid_capabilities
Errors: invalid_tag_key, quota_policy_not_found, budget_not_found, schedule_conflict$$;
-- grant: ff_producer, ff_operator, ff_admin

-- Creates the lane and the queue of the executions of a schedule, so that firing it does not wait for a concurrent
-- creation of them. They are never removed.
create or replace function ff__schedule_queue(s ff_submission, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    insert into ff_lane_registry (lane_id, state, state_changed_at_ms, registered_at_ms, registered_by)
    values (s.lane_id, 'active', p_now_ms, p_now_ms, 'create_schedule')
    on conflict do nothing;
    perform ff__queue(s.lane_id, s.namespace, s.limited, s.caps_key, s.required_capabilities);
end
$$;
