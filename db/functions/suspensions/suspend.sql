-- ff_suspend and ff_suspend_execution. Locks the execution; all its dependent rows are written under that lock. Order:
-- argument checks, replays, the fence, the key, the waitpoints; then either the signals buffered by pending waitpoints
-- already satisfy the condition, or the attempt pauses.
create or replace function ff__suspend(
    p_fence ff_fence,
    p_condition jsonb,
    p_waitpoints jsonb,
    p_reason_code text,
    p_timeout_ms bigint,
    p_timeout_at_ms bigint,
    p_timeout_behavior text,
    p_policy jsonb,
    p_reason_detail text,
    p_requested_by text,
    p_continuation_pointer text,
    p_suspension_id uuid,
    p_idempotency_key text
) returns setof ff_suspend_row
language plpgsql volatile
as $$
declare
    v_key text := nullif(p_idempotency_key, '');
    v_max_chars int := ff__engine_limit('max_name_chars');
    v_behavior text;
    v_policy jsonb;
    v_hash bytea;
    v_verdict text;
    v_handle text;
    v_bindings ff_binding[];
    v_rows ff_suspend_row[] := '{}'::ff_suspend_row[];
    v_fresh int := 0;
    v_n int;
    v_open int;
    v_closed int;
    v_pending uuid[] := '{}'::uuid[];
    v_names text[];
    v_token text;
    a ff_ending;
    v record;
    e ff_exec;
    k ff_waitpoint_hmac;
    b ff_binding;
    w ff_waitpoint;
    s ff_suspension;
    r ff_suspend_row;
begin
    perform ff__check_reason_code(p_reason_code);
    if p_requested_by is null or p_requested_by not in ('worker', 'operator', 'policy', 'system_timeout_policy') then
        perform ff__invalid('p_requested_by', 'must be worker, operator, policy or system_timeout_policy');
    elsif num_nonnulls(p_timeout_ms, p_timeout_at_ms) = 2 then
        perform ff__raise_invalid_timeout('is given twice, as a length and as a time');
    elsif p_timeout_ms not between 1 and 315360000000 then
        perform ff__raise_invalid_timeout('is not between 1 and 315360000000 ms');
    elsif p_timeout_at_ms > ff__max_time_ms() then
        perform ff__raise_invalid_timeout('is after the year 9999');
    elsif p_timeout_behavior not in ('fail', 'cancel', 'expire', 'auto_resume_with_timeout_signal', 'escalate') then
        perform ff__raise_invalid_timeout('has an unknown behavior');
    elsif p_timeout_behavior is not null and num_nonnulls(p_timeout_ms, p_timeout_at_ms) = 0 then
        perform ff__raise_invalid_timeout('has a behavior and no time');
    elsif p_condition is null then
        perform ff__invalid('p_condition', 'must not be null');
    end if;
    if num_nonnulls(p_timeout_ms, p_timeout_at_ms) = 1 then
        v_behavior := coalesce(p_timeout_behavior, 'fail');
    end if;
    v := ff__check_condition(p_condition, p_fence.execution_id, ff__engine_limit('max_condition_nodes'), v_max_chars);
    if p_condition ->> 'kind' = 'timeout_only' and v_behavior is null then
        perform ff__raise_invalid_condition('timeout_only_without_deadline', '');
    end if;
    v_bindings := ff__check_bindings(p_waitpoints, v.targets, p_fence.execution_id, v_max_chars);
    v_policy := ff__resume_policy(p_policy);
    if octet_length(p_continuation_pointer) > 65536 then
        perform ff__invalid('p_continuation_pointer', 'must have at most 65536 bytes');
    elsif v_key is not null then
        perform ff__check_text('p_idempotency_key', v_key, 1, 512);
    end if;
    v_hash := sha256(convert_to(jsonb_build_array(p_condition, nullif(p_waitpoints, '[]'), v_policy, p_reason_code,
                                                  p_timeout_ms, p_timeout_at_ms, v_behavior)::text, 'UTF8'));

    e := ff__open(p_fence.execution_id);
    if p_fence.attempt_index is null then
        select t.attempt_index into p_fence.attempt_index from ff_attempt t
         where t.execution_id = e.execution_id and t.attempt_id = p_fence.attempt_id;
    end if;
    v_handle := ff__encode_handle(e.partition_key, e.execution_id, p_fence.attempt_index, p_fence.lease_id,
                                  p_fence.lease_epoch, p_fence.attempt_id);
    v_verdict := ff__fence_status(e, p_fence, 'suspend');
    -- A recorded answer contains tokens: only the fence that suspended gets it, and under its key the live fence.
    if v_key is not null then
        select x.* into s from ff_suspension x
         where x.execution_id = e.execution_id and x.idempotency_key = v_key
           and (v_verdict is null
                or (x.lease_id = p_fence.lease_id and x.lease_epoch = p_fence.lease_epoch
                    and x.attempt_id = p_fence.attempt_id));
    end if;
    if s.suspension_id is null then
        -- No such key (or a later run has taken it over): find the same call of the same fence.
        select x.* into s from ff_suspension x
         where x.execution_id = e.execution_id and x.lease_id = p_fence.lease_id and x.lease_epoch = p_fence.lease_epoch
           and x.attempt_id = p_fence.attempt_id and x.request_hash = v_hash
           and case when v_verdict = 'replay'
                    then x.outcome = 'suspended' and coalesce(x.idempotency_key = v_key, true)
                    when coalesce(v_verdict, 'live') in ('live', 'lease_expired', 'lease_revoked')
                    -- This fence can suspend again: a call with a different key, or without the key, is another wait.
                    then x.outcome = 'already_satisfied' and x.idempotency_key is not distinct from v_key end
         order by x.suspension_no desc limit 1;
    end if;
    if s.request_hash <> v_hash then
        perform ff__raise('idempotency_conflict',
                          'this idempotency key was used for another suspension of the execution',
                          jsonb_build_object('execution_id', p_fence.wire_id, 'suspension_id', s.suspension_id));
    elsif v_verdict is null and s.close_reason in ('resumed', 'operator_resume', 'timed_out_auto_resume') then
        return query select x.* from ff__suspension_rows(e, s, 'already_resumed', true, v_handle) x;
        return;
    elsif v_verdict is null and s.outcome = 'suspended' and s.closed_at_ms is not null then
        -- The suspension ended with its attempt and was never resumed: suspend again and take over the key.
        update ff_suspension x set idempotency_key = null where x.suspension_id = s.suspension_id;
    elsif s.suspension_id is not null then
        return query select x.* from ff__suspension_rows(e, s, s.outcome, true, v_handle) x;
        return;
    end if;
    if p_timeout_at_ms <= e.now_ms then
        perform ff__raise_invalid_timeout('has passed');
    elsif v_verdict is not null then
        perform ff__fence(p_fence);
    end if;

    if e.flow_id is not null then
        perform ff__check_flow_open(e);
    end if;
    select c.open_waitpoints,
           (select x.suspension_id from ff_suspension x
             where x.execution_id = c.execution_id and x.closed_at_ms is null)
      into v_open, s.suspension_id
      from ff_execution c where c.execution_id = e.execution_id;
    if s.suspension_id is not null then
        perform ff__raise('corrupt_state', format('execution %s is active and has an open suspension', p_fence.wire_id),
                          jsonb_build_object('execution_id', p_fence.wire_id, 'suspension_id', s.suspension_id));
    end if;
    k := ff__active_key();
    s.waitpoint_ids := '{}'::uuid[];
    foreach b in array v_bindings loop
        if b.pending then
            perform ff__check_pending(e, b.waitpoint_id);
            v_pending := v_pending || b.waitpoint_id;
        else
            v_fresh := v_fresh + 1;
            b.waitpoint_id := coalesce(b.waitpoint_id, ff__mint_id(e.now_ms, e.partition_key));
        end if;
        s.waitpoint_ids := s.waitpoint_ids || b.waitpoint_id;
    end loop;
    if exists (select from unnest(v_bindings) o where o.pending and o.waitpoint_key is null) then
        -- Created after the first check, by the transaction that held the lock then: its key is now known.
        v_bindings := ff__check_bindings(p_waitpoints, v.targets, e.execution_id, v_max_chars);
    end if;
    if v_open + v_fresh > ff__engine_limit('max_open_waitpoints') then
        perform ff__raise_waitpoint_limit(e);
    end if;

    s.suspension_id := coalesce(p_suspension_id, ff__mint_id(e.now_ms, e.partition_key));
    s.timeout_at_ms := coalesce(p_timeout_at_ms, e.now_ms + p_timeout_ms);
    s.policy := v_policy;
    insert into ff_suspension (
        suspension_id, execution_id, lease_id, attempt_id, lease_epoch, suspended_at_ms, timeout_at_ms, attempt_index,
        suspension_no, outcome, reason_code, requested_by, timeout_behavior, reason_detail, continuation_pointer,
        idempotency_key, request_hash, waitpoint_ids, condition, policy)
    values (
        s.suspension_id, e.execution_id, e.lease_id, e.current_attempt_id, e.lease_epoch, e.now_ms, s.timeout_at_ms,
        e.current_attempt_index,
        1 + coalesce((select x.suspension_no from ff_suspension x where x.execution_id = e.execution_id
                       order by x.lease_epoch desc, x.suspension_no desc limit 1), 0),
        'suspended', p_reason_code, p_requested_by, v_behavior, left(p_reason_detail, 4096), p_continuation_pointer,
        v_key, v_hash, s.waitpoint_ids, p_condition, v_policy)
    on conflict (suspension_id) do nothing;
    if not found then
        perform ff__raise('suspension_conflict', format('there is a suspension %s already', s.suspension_id),
                          jsonb_build_object('execution_id', p_fence.wire_id, 'suspension_id', s.suspension_id));
    end if;
    -- In id order: two suspensions that bind the same ids cannot deadlock.
    for v_n in select u.n from unnest(s.waitpoint_ids) with ordinality u(id, n) order by u.id loop
        b := v_bindings[v_n];
        w.waitpoint_id := s.waitpoint_ids[v_n];
        w.waitpoint_key := coalesce(b.waitpoint_key, 'wpk:' || w.waitpoint_id::text);
        v_names := case p_condition ->> 'kind' when 'operator_only' then '{__operator_only__}'
                                               when 'timeout_only' then '{__timeout_only__}'
                                               else ff__required_names(v.targets, w.waitpoint_key) end;
        if b.pending then
            update ff_waitpoint x set
                state = 'active', suspension_id = s.suspension_id, ordinal = v_n - 1, activated_at_ms = e.now_ms,
                expires_at_ms = s.timeout_at_ms, required_signal_names = v_names
             where x.waitpoint_id = w.waitpoint_id returning x.* into w;
            v_token := ff__current_token(e, w);
        else
            v_token := ff__waitpoint_token(k.kid, k.secret, ff__wire_id(e.partition_key, e.execution_id),
                                           w.waitpoint_id);
            insert into ff_waitpoint (
                waitpoint_id, execution_id, suspension_id, created_at_ms, activated_at_ms, expires_at_ms, attempt_index,
                ordinal, state, waitpoint_key, token_kid, token_fingerprint, required_signal_names)
            values (
                w.waitpoint_id, e.execution_id, s.suspension_id, e.now_ms, e.now_ms, s.timeout_at_ms,
                e.current_attempt_index, v_n - 1, 'active', w.waitpoint_key, k.kid, ff__fingerprint(v_token), v_names)
            on conflict (waitpoint_id) do nothing;
            if not found then
                perform ff__raise_waitpoint_conflict(e, w.waitpoint_id);
            end if;
        end if;
        v_rows[v_n] := ('suspended', false, s.suspension_id, v_n - 1, w.waitpoint_id, w.waitpoint_key, v_token,
                        s.timeout_at_ms, v_handle)::ff_suspend_row;
    end loop;

    if v_pending <> '{}' and ff__bind_signals(e, s.suspension_id, p_condition, v_pending) then
        v_closed := ff__close_suspension(e, s, 'already_satisfied');
        update ff_execution c set
            open_waitpoints = c.open_waitpoints + v_fresh - v_closed, last_mutation_at_ms = e.now_ms,
            last_event_ord = e.ord
         where c.execution_id = e.execution_id;
        e := ff__emit_wait(e, 'suspension', 'already_satisfied', null, s.suspension_id, s.waitpoint_ids[1],
                           jsonb_build_object('reason_code', p_reason_code));
        foreach r in array v_rows loop
            r.outcome := 'already_satisfied';
            return next r;
        end loop;
        return;
    end if;

    a := ff__end_lease(e, 'suspend', 'suspend', null, jsonb_build_object('suspension_id', s.suspension_id));
    update ff_execution c set
        state = ff__suspended_state(p_reason_code), ready_in = null, due_at_ms = null,
        blocking_detail = left(p_reason_detail, 4096), attempt_suspended_at_ms = e.now_ms,
        attempt_remaining_ms = case when c.attempt_timeout_at_ms is not null
                                    then greatest(1, c.attempt_timeout_at_ms - e.now_ms) end,
        attempt_timeout_at_ms = null, release_op = a.op, release_at_ms = e.now_ms, release_detail = a.detail,
        release_lease_id = null, release_lease_epoch = null, current_suspension_id = s.suspension_id,
        current_waitpoint_id = s.waitpoint_ids[1], open_waitpoints = c.open_waitpoints + v_fresh,
        last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    e := ff__emit(e, 'lease', a.lease_event, a.lease_reason);
    e := ff__emit_wait(e, 'suspension', 'suspended', p_reason_code, s.suspension_id, s.waitpoint_ids[1],
                       jsonb_strip_nulls(jsonb_build_object(
                           'requested_by', p_requested_by, 'waitpoints', cardinality(s.waitpoint_ids),
                           'timeout_at_ms', s.timeout_at_ms, 'timeout_behavior', v_behavior)));
    if e.limited then
        perform ff__free_slot(e, false);
    end if;
    foreach r in array v_rows loop
        return next r;
    end loop;
end
$$;

-- Raises invalid_timeout.
create or replace function ff__raise_invalid_timeout(p_reason text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_timeout', format('the timeout of the suspension %s', p_reason),
                      jsonb_build_object('reason', p_reason));
end
$$;

-- Completes the policy of a suspension with defaults. Errors: invalid_input (NULL), invalid_resume_policy
-- (DETAIL.path).
create or replace function ff__resume_policy(p_policy jsonb) returns jsonb
language plpgsql stable
as $$
declare
    c_default constant jsonb := jsonb '{"resume_target": "runnable", "resume_delay_ms": 0,
                                  "close_waitpoint_on_resume": true, "consume_matched_signals": true,
                                  "retain_signal_buffer_until_closed": false}';
    v record;
begin
    if p_policy = '{}' then
        return c_default;
    elsif p_policy is null then
        perform ff__invalid('p_policy', 'must not be null');
    elsif jsonb_typeof(p_policy) <> 'object' then
        perform ff__raise('invalid_resume_policy', 'the policy of a suspension is not an object',
                          jsonb_build_object('path', '', 'reason', 'wrong_type'));
    end if;
    for v in select x.key, x.value from jsonb_each(p_policy) x loop
        if not c_default ? v.key then
            perform ff__raise('invalid_resume_policy', 'the policy of a suspension has no such key',
                              jsonb_build_object('path', left(v.key, 64), 'reason', 'unknown_key'));
        elsif jsonb_typeof(v.value) <> jsonb_typeof(c_default -> v.key)
              or (v.key = 'resume_target' and v.value <> '"runnable"')
              or (v.key = 'resume_delay_ms'
                  and ((p_policy -> v.key)::numeric not between 0 and 604800000
                       or (p_policy -> v.key)::numeric <> trunc((p_policy -> v.key)::numeric)))
        then
            perform ff__raise('invalid_resume_policy', format('%s has a value that it cannot have', v.key),
                              jsonb_build_object('path', v.key, 'reason', 'wrong_type'));
        end if;
    end loop;
    return c_default || p_policy;
end
$$;

-- Returns the recorded answer of a suspension: one row per waitpoint that it bound, by ordinal, with the tokens.
create or replace function ff__suspension_rows(
    e ff_exec, s ff_suspension, p_outcome text, p_replayed boolean, p_handle text
) returns setof ff_suspend_row
language plpgsql volatile
as $$
declare
    w ff_waitpoint;
begin
    for v_n in 1..cardinality(s.waitpoint_ids) loop
        select x.* into w from ff_waitpoint x where x.waitpoint_id = s.waitpoint_ids[v_n];
        return next (p_outcome, p_replayed, s.suspension_id, v_n - 1, w.waitpoint_id, w.waitpoint_key,
                     ff__current_token(e, w), s.timeout_at_ms, p_handle)::ff_suspend_row;
    end loop;
end
$$;

-- Checks a waitpoint that a suspension binds: pending, of this execution and attempt, not expired.
-- Errors: waitpoint_not_found, invalid_waitpoint_for_execution, waitpoint_not_pending, pending_waitpoint_expired.
create or replace function ff__check_pending(e ff_exec, p_waitpoint_id uuid) returns void
language plpgsql stable
as $$
declare
    v_detail jsonb := jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'waitpoint_id', p_waitpoint_id);
    w ff_waitpoint;
begin
    select x.* into w from ff_waitpoint x where x.waitpoint_id = p_waitpoint_id;
    if not found then
        perform ff__raise('waitpoint_not_found', format('no waitpoint %s', p_waitpoint_id), v_detail);
    elsif w.execution_id <> e.execution_id or w.attempt_index <> e.current_attempt_index then
        perform ff__raise('invalid_waitpoint_for_execution',
                          format('waitpoint %s belongs to another execution or attempt', p_waitpoint_id), v_detail);
    elsif w.state <> 'pending' then
        perform ff__raise('waitpoint_not_pending', format('waitpoint %s is %s', p_waitpoint_id, w.state),
                          v_detail || jsonb_build_object('state', w.state, 'close_reason', w.close_reason));
    elsif w.expires_at_ms <= e.now_ms then
        perform ff__raise('pending_waitpoint_expired',
                          format('waitpoint %s expired %s ms ago', p_waitpoint_id, e.now_ms - w.expires_at_ms),
                          v_detail || jsonb_build_object('expires_at_ms', w.expires_at_ms));
    end if;
end
$$;

-- The distinct signal names that a checked condition (ff__check_condition.targets) accepts on one waitpoint, in tree
-- order; empty if it accepts any name.
create or replace function ff__required_names(p_targets jsonb, p_key text) returns text[]
language plpgsql immutable
as $$
begin
    if exists (select from jsonb_array_elements(p_targets) t(pair)
                where t.pair ->> 0 = p_key and t.pair -> 1 = 'null') then
        return '{}'::text[];
    end if;
    return array(select n.name
                   from jsonb_array_elements(p_targets) with ordinality t(pair, n),
                        jsonb_array_elements_text(t.pair -> 1) with ordinality n(name, m)
                  where t.pair ->> 0 = p_key
                  group by n.name order by min(t.n), min(n.m));
end
$$;

-- Moves the signals buffered by pending waitpoints to the suspension that binds them. A signal that matched an earlier
-- suspension and does not match here stays with the earlier one, and so does a timeout signal. Returns whether the
-- signals satisfy the condition.
create or replace function ff__bind_signals(
    e ff_exec, p_suspension_id uuid, p_condition jsonb, p_waitpoint_ids uuid[]
) returns boolean
language plpgsql volatile
as $$
declare
    v_last bigint;
begin
    with bound as (
        update ff_signal s
           set suspension_id = p_suspension_id, matched = ff__accepts(p_condition, w.waitpoint_key, s.signal_name)
          from ff_waitpoint w
         where s.execution_id = e.execution_id and s.waitpoint_id = any (p_waitpoint_ids)
           and w.waitpoint_id = s.waitpoint_id
           and s.consumed_by is null and not s.discarded and s.source_type <> 'engine'
           and (s.matched is not true or ff__accepts(p_condition, w.waitpoint_key, s.signal_name))
        returning s.accepted_at_ms)
    select max(x.accepted_at_ms) into v_last from bound x;
    if v_last is null then
        return false;
    end if;
    update ff_suspension s set last_signal_at_ms = v_last where s.suspension_id = p_suspension_id;
    update ff_waitpoint w set matched_count = x.matched
      from (select s.waitpoint_id, count(*) filter (where s.matched) as matched from ff_signal s
             where s.execution_id = e.execution_id and s.waitpoint_id = any (p_waitpoint_ids)
             group by s.waitpoint_id) x
     where w.waitpoint_id = x.waitpoint_id;
    return ff__satisfied(p_condition, ff__seen_signals(p_suspension_id));
end
$$;
