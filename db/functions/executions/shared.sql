-- Completes one locked execution. p_op: complete for the lease holder, otherwise override.
create or replace function ff__complete_one(e ff_exec, p_op text, p_result bytea, p_result_encoding text) returns void
language plpgsql volatile
as $$
begin
    perform ff__terminate(e, ff__end_attempt(e, p_op, 'success', p_op), 'success', p_result => p_result,
                          p_result_encoding => p_result_encoding);
end
$$;

-- Body of ff_delay and ff_delay_execution: pauses the attempt until a time. The attempt's timeout stops, its retries do
-- not change.
create or replace function ff__delay(
    p_fence ff_fence,
    p_delay_until_ms bigint,
    p_delay_ms bigint,
    p_override boolean default false,
    out public_state text,
    out delay_until_ms bigint,
    out replayed boolean
)
language plpgsql volatile
as $$
declare
    v_detail jsonb;
    e ff_exec;
    a ff_ending;
begin
    if num_nonnulls(p_delay_until_ms, p_delay_ms) <> 1 then
        perform ff__invalid('p_delay_ms', 'or p_delay_until_ms must be given, and not both');
    end if;
    perform ff__check_time('p_delay_until_ms', p_delay_until_ms, -9223372036854775808);
    perform ff__check_time('p_delay_ms', p_delay_ms, p_from_ms => ff__now_ms());
    if p_override then
        e := ff__open_override(p_fence.wire_id, p_fence.attempt_index, 'delay');
    else
        e := ff__fence(p_fence, 'delay');
    end if;
    replayed := e.execution_id is null;
    if replayed then
        v_detail := (ff__recorded_release(p_fence, 'delay')).release_detail;
        public_state := v_detail ->> 'public_state';
        delay_until_ms := (v_detail ->> 'delay_until_ms')::bigint;
        return;
    end if;
    if e.flow_id is not null then
        perform ff__check_flow_open(e);
    end if;
    delay_until_ms := coalesce(p_delay_until_ms, ff__time_after(e.now_ms, p_delay_ms));
    public_state := case when delay_until_ms > e.now_ms then 'delayed' else 'resumable' end;
    delay_until_ms := case when delay_until_ms > e.now_ms then delay_until_ms end;
    a := ff__end_lease(e, case when p_override then 'override' else 'delay' end,
                       case when p_override then 'override' else 'delay' end, null,
                       jsonb_build_object('public_state', public_state, 'delay_until_ms', delay_until_ms));
    public_state := ff__settle(e, a, 'attempt_interrupted', delay_until_ms, 'delayed');
    if e.flow_id is not null then
        public_state := ff__record_settled_state(e, public_state);
    end if;
end
$$;

-- Body of ff_fail and ff_fail_execution: checks the arguments and the fence (or the override), then calls ff__fail.
-- Returns its result with replayed added.
create or replace function ff__fail_verb(
    p_fence ff_fence, p_reason text, p_classification text, p_category text, p_retry_after_ms bigint,
    p_override boolean default false
) returns jsonb
language plpgsql volatile
as $$
declare
    e ff_exec;
begin
    if p_classification is null
       or p_classification not in ('transient', 'permanent', 'infra_crash', 'timeout', 'cancelled') then
        perform ff__invalid('p_classification', 'must be transient, permanent, infra_crash, timeout or cancelled');
    elsif p_category is not null then
        perform ff__check_text('p_category', p_category, 1, 256);
    end if;
    if p_retry_after_ms not between 0 and 2592000000 then
        perform ff__invalid('p_retry_after_ms', 'must be between 0 and 2592000000',
                            jsonb_build_object('value', p_retry_after_ms));
    end if;
    if p_override then
        e := ff__open_override(p_fence.wire_id, p_fence.attempt_index, 'fail');
    else
        e := ff__fence(p_fence, 'fail');
    end if;
    if e.execution_id is null then
        return (ff__recorded_release(p_fence, 'fail')).release_detail || '{"replayed": true}';
    end if;
    return ff__fail(e, case when p_override then 'override' else 'fail' end, left(coalesce(p_reason, ''), 4096),
                    p_classification, coalesce(p_category, p_classification),
                    p_retry_after_ms => p_retry_after_ms) || '{"replayed": false}';
end
$$;

-- Stores progress on the current attempt. The caller has checked the fence.
create or replace function ff__progress(
    e ff_exec, p_percent int, p_message text, out progress_pct int, out progress_updated_at_ms bigint
)
language plpgsql volatile
as $$
begin
    if p_percent not between 0 and 100 then
        perform ff__invalid('p_percent', 'must be between 0 and 100', jsonb_build_object('value', p_percent));
    end if;
    update ff_execution c set
        progress_pct = coalesce(p_percent, c.progress_pct),
        progress_message = coalesce(left(p_message, 4096), c.progress_message),
        progress_updated_at_ms = e.now_ms
     where c.execution_id = e.execution_id
    returning c.progress_pct, c.progress_updated_at_ms into progress_pct, progress_updated_at_ms;
end
$$;
