-- Applies a passed attempt timeout: a failure of class timeout; without a retry left the execution ends expired.
-- Returns as ff__fail.
create or replace function ff__expire_attempt(e ff_exec) returns jsonb
language plpgsql volatile
as $$
begin
    return ff__fail(e, 'expire', 'attempt_timeout', 'timeout', 'attempt_timeout', 'attempt_timeout', 'expired');
end
$$;

-- Applies a passed deadline: the execution ends expired, whatever its state.
create or replace function ff__expire_deadline(e ff_exec) returns void
language plpgsql volatile
as $$
declare
    a ff_ending;
begin
    if e.current_attempt_id is not null then
        a := ff__end_attempt(e, 'expire', 'expired', null, 'execution_deadline', 'execution_deadline', 'timeout',
                             'timeout');
    end if;
    perform ff__terminate(e, a, 'expired', 'execution_deadline', 'timeout');
end
$$;

-- Applies a passed deadline or attempt timeout; returns whether there was one.
create or replace function ff__expire_if_due(e ff_exec) returns boolean
language plpgsql volatile
as $$
begin
    if e.deadline_at_ms <= e.now_ms then
        perform ff__expire_deadline(e);
    elsif e.lifecycle_phase = 'active' and e.attempt_timeout_at_ms <= e.now_ms then
        perform ff__expire_attempt(e);
    else
        return false;
    end if;
    return true;
end
$$;

-- Applies a failure: ends the attempt, then schedules a retry by the stored policy, or ends the execution with
-- p_terminal. Returns the result as recorded for a replay: outcome, public_state, delay_until_ms, next_attempt_index,
-- retry_count. p_timer names the timer that ended the lease, if any; p_op as in ff__end_attempt. p_retry_after_ms
-- replaces the policy's backoff.
create or replace function ff__fail(
    e ff_exec,
    p_op text,
    p_reason text,
    p_classification text,
    p_category text,
    p_timer text default null,
    p_terminal text default 'failed',
    p_retry_after_ms bigint default null
) returns jsonb
language plpgsql volatile
as $$
declare
    v_retry jsonb := (select i.policy -> 'retry_policy' from ff_exec_input i where i.execution_id = e.execution_id);
    v_again boolean := coalesce(
        p_classification not in ('permanent', 'cancelled')
        and (v_retry -> 'retryable_categories' = '[]' or v_retry -> 'retryable_categories' ? p_category)
        and e.retry_count < (v_retry -> 'max_retries')::int, false);
    v_delay bigint;
    v_detail jsonb;
    v_state text;
    a ff_ending;
begin
    if v_again and e.flow_id is not null then
        v_again := not ff__flow_cancelled(e.flow_id);
    end if;
    if v_again then
        v_delay := coalesce(p_retry_after_ms, ff__retry_delay_ms(v_retry, e.retry_count));
        v_detail := jsonb_build_object(
            'outcome', 'retry_scheduled',
            'public_state', case when v_delay > 0 then 'delayed' else 'waiting' end,
            'delay_until_ms', case when v_delay > 0 then ff__time_after(e.now_ms, v_delay) end,
            'next_attempt_index', e.total_attempt_count,
            'retry_count', e.retry_count + 1);
    else
        v_detail := jsonb_build_object('outcome', 'terminal_failed', 'public_state', p_terminal,
                                       'retry_count', e.retry_count);
    end if;
    a := ff__end_attempt(e, p_op, case p_terminal when 'expired' then 'expired' else 'failure' end,
                         case p_op when 'override' then 'override' else 'fail' end, p_timer, p_reason, p_category,
                         p_classification, v_detail);
    if v_again then
        v_state := ff__settle(e, a, 'pending_retry_attempt', ff__time_after(e.now_ms, v_delay), 'backoff');
        if e.flow_id is not null then
            v_detail := v_detail || jsonb_build_object('public_state', ff__record_settled_state(e, v_state));
        end if;
    else
        perform ff__terminate(e, a, p_terminal, p_reason, p_category);
    end if;
    return v_detail;
end
$$;

-- The delay before the next retry, by the stored retry policy. p_retries: retries made before this failure.
create or replace function ff__retry_delay_ms(p_retry_policy jsonb, p_retries int) returns bigint
language plpgsql volatile
as $$
declare
    v_backoff jsonb := p_retry_policy -> 'backoff';
    v_initial float8;
    v_max float8;
    v_multiplier float8;
    v_delay float8;
begin
    if v_backoff ->> 'type' = 'fixed' then
        return (v_backoff -> 'delay_ms')::bigint;
    end if;
    v_initial := (v_backoff -> 'initial_delay_ms')::float8;
    v_max := (v_backoff -> 'max_delay_ms')::float8;
    v_multiplier := (v_backoff -> 'multiplier')::float8;
    -- In logarithms: multiplier ^ retries overflows float8 long before the policy's limits are reached.
    if v_initial <= 0 or v_max <= 0 then
        v_delay := 0;
    elsif ln(v_initial) + p_retries * ln(v_multiplier) >= ln(v_max) then
        v_delay := v_max;
    else
        v_delay := v_initial * power(v_multiplier, p_retries);
    end if;
    v_delay := floor(v_delay);
    if (v_backoff -> 'jitter')::boolean then
        -- Jitter: whole milliseconds from half the delay to the full delay, both included.
        v_delay := ceil(v_delay / 2) + floor(random() * (floor(v_delay / 2) + 1));
    end if;
    return v_delay::bigint;
end
$$;

-- Ends an execution as failed after it has crashed as often as its policy allows.
create or replace function ff__fail_exhausted_reclaims(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    perform ff__terminate(
        e, ff__end_attempt(e, 'reclaim', 'interrupted_reclaimed', null, null,
                           case e.ownership_state when 'lease_revoked' then 'lease_revoked' else 'lease_expired' end,
                           'infra_crash', 'infra_crash'),
        'failed', 'max_reclaims_exceeded', 'infra_crash');
end
$$;
