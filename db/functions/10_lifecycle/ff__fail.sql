-- The failure body: ends the attempt, then a retry by the stored policy, or the end of the execution with p_terminal.
-- Returns what happened, as it is recorded for a replay: outcome, public_state, delay_until_ms, next_attempt_index,
-- retry_count. p_timer names the timer that ended the lease, if one did; p_op as in ff__end_attempt.
-- p_retry_after_ms takes the place of the policy's backoff.
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
        v_state := ff__requeue(e, a, 'pending_retry_attempt', ff__time_after(e.now_ms, v_delay), 'backoff');
        if e.flow_id is not null then
            v_detail := v_detail || jsonb_build_object('public_state', ff__note_settled(e, v_state));
        end if;
    else
        perform ff__terminate(e, a, p_terminal, p_reason, p_category);
    end if;
    return v_detail;
end
$$;
