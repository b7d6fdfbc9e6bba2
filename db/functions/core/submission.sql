-- Checks all arguments of a submission except its lane, and extracts the fields of its policy.
-- Errors: invalid_input, invalid_policy, invalid_capabilities, invalid_tag_key, quota_policy_not_found,
-- budget_not_found.
create or replace function ff__check_submission(
    p_lane_id text,
    p_execution_kind text,
    p_priority int,
    p_policy jsonb,
    p_tags jsonb,
    p_required_capabilities text[],
    p_delay_until_ms bigint,
    p_delay_ms bigint,
    p_deadline_at_ms bigint,
    p_namespace text,
    p_payload_encoding text,
    p_creator text,
    p_now_ms bigint
) returns ff_submission
language plpgsql stable
as $$
declare
    v_budget text;
    s ff_submission;
begin
    if (octet_length(p_namespace) between 1 and 64 and octet_length(p_execution_kind) <= 128
        and octet_length(p_creator) <= 256 and octet_length(coalesce(p_payload_encoding, '')) <= 64
        and (p_namespace || p_execution_kind || p_creator || coalesce(p_payload_encoding, '')) !~ E'[\\x01-\\x1f\\x7f]')
       is not true
    then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
        perform ff__check_text('p_execution_kind', p_execution_kind, 0, 128);
        perform ff__check_text('p_creator', p_creator, 0, 256);
        perform ff__check_text('p_payload_encoding', p_payload_encoding, 0, 64);
    end if;

    s.policy := ff__normal_policy(p_policy, p_now_ms);
    if p_required_capabilities is null then
        perform ff__invalid('p_required_capabilities', 'must not be null');
    else
        s.required_capabilities := ff__check_capabilities(
            'p_required_capabilities',
            array(select t.token from unnest(p_required_capabilities) t(token)) || ff__policy_capabilities(s.policy));
        s.caps_key := ff__caps_key(s.required_capabilities);
    end if;
    if p_tags is distinct from '{}' then
        perform ff__check_tags('p_tags', p_tags);
    end if;

    s.dedup_window_ms := (s.policy -> 'dedup_window_ms')::bigint;
    s.priority := coalesce(p_priority, 0);
    if p_policy <> '{}' then
        s.priority := coalesce(p_priority, (s.policy -> 'priority')::int, 0);
        s.retention_ms := (s.policy -> 'retention_ms')::bigint;
        s.deadline_at_ms := p_now_ms + (s.policy #> '{timeout_policy,execution_deadline_ms}')::bigint;
        s.attempt_timeout_ms := (s.policy #> '{timeout_policy,attempt_timeout_ms}')::bigint;
        s.delay_until_ms := (s.policy -> 'delay_until_ms')::bigint;
    end if;
    s.priority := greatest(0, least(s.priority, 9000));
    s.deadline_at_ms := coalesce(p_deadline_at_ms, s.deadline_at_ms);

    if p_delay_until_ms is not null and p_delay_ms is not null then
        perform ff__invalid('p_delay_ms', 'and p_delay_until_ms cannot both be given');
    elsif p_deadline_at_ms <= p_now_ms then
        perform ff__invalid('p_deadline_at_ms', 'must lie in the future',
                            jsonb_build_object('value', p_deadline_at_ms, 'now_ms', p_now_ms));
    end if;
    if num_nonnulls(p_delay_until_ms, p_delay_ms, p_deadline_at_ms) > 0 then
        -- Any time in the past means no delay.
        perform ff__check_time('p_delay_until_ms', p_delay_until_ms, -9223372036854775808);
        perform ff__check_time('p_delay_ms', p_delay_ms, p_from_ms => p_now_ms);
        perform ff__check_time('p_deadline_at_ms', p_deadline_at_ms);
    end if;
    s.delay_until_ms := coalesce(p_delay_until_ms, p_now_ms + p_delay_ms, s.delay_until_ms);
    if s.delay_until_ms <= p_now_ms then
        s.delay_until_ms := null;
    elsif s.delay_until_ms >= s.deadline_at_ms then
        perform ff__invalid(case when p_delay_ms is null then 'p_delay_until_ms' else 'p_delay_ms' end,
                            'must end before the deadline',
                            jsonb_build_object('delay_until_ms', s.delay_until_ms, 'deadline_at_ms', s.deadline_at_ms));
    end if;

    if s.policy ? 'quota_policy_id' then
        s.quota_policy_id := s.policy ->> 'quota_policy_id';
        if not exists (select from ff_quota_policy q where q.quota_policy_id = s.quota_policy_id) then
            perform ff__raise_no_quota_policy(s.quota_policy_id);
        end if;
    end if;
    if s.policy ? 'budget_ids' then
        s.budget_ids := array(select x.budget_id
                                from jsonb_array_elements_text(s.policy -> 'budget_ids') with ordinality x(budget_id, n)
                               group by x.budget_id order by min(x.n));
        for v_budget in
            select x.budget_id from unnest(s.budget_ids) with ordinality x(budget_id, n)
             where not exists (select from ff_budget b where b.budget_id = x.budget_id) order by x.n limit 1
        loop
            perform ff__raise('budget_not_found', format('no budget %s', v_budget),
                              jsonb_build_object('budget_id', v_budget));
        end loop;
    end if;

    s.lane_id := p_lane_id;
    s.namespace := p_namespace;
    s.execution_kind := p_execution_kind;
    s.creator := p_creator;
    s.payload_encoding := p_payload_encoding;
    s.tags := nullif(p_tags, '{}');
    s.limited := s.quota_policy_id is not null or s.budget_ids is not null;
    s.state := case when s.delay_until_ms is null then 'ready'::ff_state else 'delayed' end;
    s.policy := nullif(s.policy, ff__default_policy());
    return s;
end
$$;

-- The key of a set of capabilities in the ready index: the sorted tokens joined with commas ('' = none); above 256
-- bytes a space and their sha256, because index entries are limited in size. No token starts with a space.
create or replace function ff__caps_key(p_capabilities text[]) returns text
language sql stable parallel safe
as $$
    select case when octet_length(k.joined) <= 256 then k.joined
                else ' ' || encode(sha256(convert_to(k.joined, 'UTF8')), 'hex') end
      from (select array_to_string(p_capabilities, ',')) k(joined)
$$;

-- Claims an idempotency key for a new execution. NULL: the key was claimed (new, or its window had passed). Otherwise
-- returns the execution that has it. Waits for a concurrent holder of the key to commit or roll back; the clock is read
-- after that. Errors: idempotency_conflict (a live key of a different request).
create or replace function ff__claim_idempotency_key(
    p_namespace text, p_key text, p_window_ms bigint, p_execution_id uuid, p_request_hash bytea
) returns uuid
language plpgsql volatile
as $$
declare
    v_now bigint;
    k ff_idempotency;
begin
    loop
        v_now := ff__now_ms();
        insert into ff_idempotency (
            namespace, idempotency_key, partition_key, execution_id, expires_at_ms, request_hash)
        values (
            p_namespace, p_key, ff__partition(p_execution_id), p_execution_id, ff__time_after(v_now, p_window_ms),
            p_request_hash)
        on conflict do nothing;
        if found then
            return null;
        end if;
        select i.* into k from ff_idempotency i
         where i.namespace = p_namespace and i.idempotency_key = p_key for update;
        -- Not found: swept after the insert conflicted with it; retry.
        exit when found;
    end loop;
    v_now := ff__now_ms();
    if k.expires_at_ms <= v_now then
        update ff_idempotency i
           set partition_key = ff__partition(p_execution_id), execution_id = p_execution_id,
               expires_at_ms = ff__time_after(v_now, p_window_ms), request_hash = p_request_hash
         where i.namespace = p_namespace and i.idempotency_key = p_key;
        return null;
    elsif k.request_hash <> p_request_hash then
        perform ff__raise('idempotency_conflict', 'the idempotency key belongs to a different request',
                          jsonb_build_object('execution_id', ff__wire_id(k.partition_key, k.execution_id),
                                             'namespace', p_namespace));
    end if;
    return k.execution_id;
end
$$;

-- Whether data of a deleted execution with this id still exists: an event, a child, or a live idempotency key. The key
-- used for the new execution does not count.
create or replace function ff__is_id_in_use(
    p_execution_id uuid, p_namespace text default null, p_idempotency_key text default null
) returns boolean
language plpgsql volatile
as $$
begin
    return exists (select from ff__event_rows(p_execution_id))
        or exists (select from ff_child k where k.parent_id = p_execution_id)
        or exists (select from ff_idempotency i
                    where i.execution_id = p_execution_id and i.expires_at_ms > ff__now_ms()
                      and (i.namespace, i.idempotency_key) is distinct from (p_namespace, p_idempotency_key));
end
$$;

-- The only insert of executions, with the checked values of s; p_priorities (NULL: that of s) and p_payloads in the
-- order of p_ids. Those with p_waiting true start waiting for their edges. A member of a flow that is still being built
-- is in no queue. Turns are drawn in the order given, unless the caller has drawn them (p_turns), and determine the
-- claim order. Raises unique_violation for an existing id: the caller checks ids given by its client.
create or replace function ff__insert_executions(
    p_ids uuid[], p_payloads bytea[], s ff_submission, p_now_ms bigint, p_priorities int[] default null,
    p_flow_id uuid default null, p_building boolean default false, p_waiting boolean[] default null,
    p_turns bigint[] default null
) returns void
language plpgsql volatile
as $$
begin
    if p_turns is null and pg_current_xact_id() is not null then -- the id before the turns: ff__move_start relies on it
        if cardinality(p_ids) = 1 then
            p_turns := array[nextval('ff_turn_seq')];
        else
            p_turns := array(select nextval('ff_turn_seq') from generate_series(1, cardinality(p_ids)));
        end if;
    end if;
    -- Columns in table order and no volatile function: otherwise the plan has an extra node.
    insert into ff_execution (
        execution_id, created_at_ms, rank, queue_id, priority, partition_key, limited, lane_id, namespace,
        execution_kind, creator, payload, payload_encoding, flow_id, attempt_timeout_ms, deadline_at_ms, retention_ms,
        policy, tags, quota_policy_id, budget_ids, last_transition_at_ms, last_mutation_at_ms, state, ready_in,
        due_at_ms, delay_until_ms)
    select x.id, p_now_ms, ff__rank(coalesce(x.priority, s.priority), x.turn), s.queue_id,
           coalesce(x.priority, s.priority), ff__partition(x.id), s.limited, s.lane_id, s.namespace, s.execution_kind,
           s.creator, x.payload, s.payload_encoding, p_flow_id, s.attempt_timeout_ms, s.deadline_at_ms,
           s.retention_ms, s.policy, s.tags, s.quota_policy_id, s.budget_ids, p_now_ms, p_now_ms,
           case when x.waiting then 'children' else s.state end,
           case when s.delay_until_ms is null and not p_building and x.waiting is not true
                then case when coalesce(x.priority, s.priority) = 0 then s.queue_id
                          else ff__ready_queue(s.queue_id, s.limited) end end,
           case when x.waiting is not true then s.delay_until_ms end, s.delay_until_ms
      from unnest(p_ids, p_payloads, p_turns, p_priorities, p_waiting) x(id, payload, turn, priority, waiting);
end
$$;

-- Checks the lane of a submission: registers an unknown lane, rejects a draining or disabled one. Reads the lane
-- without a lock. Returns whether a worker waits for it (wake_armed); a new lane starts with true, since workers may
-- already poll it. Errors: lane_not_accepting.
create or replace function ff__open_lane(p_lane_id text, p_now_ms bigint) returns boolean
language plpgsql volatile
as $$
declare
    v_state text;
    v_armed boolean;
begin
    select l.state, l.wake_armed into v_state, v_armed from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        insert into ff_lane_registry (lane_id, state, state_changed_at_ms, registered_at_ms, registered_by)
        values (p_lane_id, 'active', p_now_ms, p_now_ms, 'create_execution')
        on conflict do nothing;
        if found then
            return true;
        end if;
        select l.state, l.wake_armed into v_state, v_armed from ff_lane_registry l where l.lane_id = p_lane_id;
    end if;
    if v_state in ('draining', 'disabled') then
        perform ff__raise('lane_not_accepting', format('lane %s is %s', p_lane_id, v_state),
                          jsonb_build_object('lane_id', p_lane_id, 'state', v_state));
    end if;
    return v_armed;
end
$$;

-- The identity of a request to create an execution. Fields are length-prefixed; -1 stands for NULL.
create or replace function ff__request_hash(
    p_lane_id text, p_execution_kind text, p_payload bytea, p_payload_encoding text, p_flow_id uuid
) returns bytea
language sql stable parallel safe
as $$
    select sha256(
        int4send(octet_length(p_lane_id)) || convert_to(p_lane_id, 'UTF8')
        || int4send(octet_length(p_execution_kind)) || convert_to(p_execution_kind, 'UTF8')
        || int4send(coalesce(octet_length(p_payload), -1)) || coalesce(p_payload, '')
        || int4send(coalesce(octet_length(p_payload_encoding), -1))
        || coalesce(convert_to(p_payload_encoding, 'UTF8'), '')
        || coalesce(uuid_send(p_flow_id), ''))
$$;
