-- A policy as it is stored: checked at every level, defaults written out (a later change of a default does not reach
-- it), JSON nulls gone. required_capabilities are left as they are: the caller checks them with the execution's own.
-- Times and durations that count from p_now_ms end with ff__last_ms.
-- Errors: invalid_input (NULL), invalid_policy (DETAIL.path).
create or replace function ff__normal_policy(p_policy jsonb, p_now_ms bigint) returns jsonb
language plpgsql stable
as $$
declare
    v_max constant bigint := ff__last_ms(p_now_ms);
    v_policy jsonb;
    v_timeout jsonb;
    v_routing jsonb;
    v_stream jsonb;
    v_key text;
begin
    if p_policy = '{}' then
        return ff__default_policy();
    elsif p_policy is null then
        perform ff__invalid('p_policy', 'must not be null');
    end if;
    v_policy := ff__policy_object(p_policy, '', '{priority,delay_until_ms,retry_policy,timeout_policy,max_reclaim_count,
        max_replay_count,dedup_window_ms,retention_ms,budget_ids,quota_policy_id,routing_requirements,
        suspension_policy,stream_policy,max_signals_per_execution,fallback_policy}');
    v_timeout := ff__policy_object(coalesce(v_policy -> 'timeout_policy', '{}'), 'timeout_policy',
                                   '{attempt_timeout_ms,execution_deadline_ms,max_reclaim_count}');
    v_routing := ff__policy_object(coalesce(v_policy -> 'routing_requirements', '{}'), 'routing_requirements',
                                   '{required_capabilities,preferred_locality,isolation_level}');
    v_stream := ff__policy_object(coalesce(v_policy -> 'stream_policy', '{}'), 'stream_policy', '{maxlen}');
    foreach v_key in array '{suspension_policy,fallback_policy}'::text[] loop
        if jsonb_typeof(v_policy -> v_key) <> 'object' then
            perform ff__policy_fault(v_key, 'must be an object');
        end if;
    end loop;
    if v_policy ? 'quota_policy_id' and (jsonb_typeof(v_policy -> 'quota_policy_id') <> 'string'
                                         or length(v_policy ->> 'quota_policy_id') not between 1 and 200) then
        perform ff__policy_fault('quota_policy_id', 'must be a string of 1 to 200 characters');
    end if;
    return jsonb_strip_nulls(jsonb_build_object(
        'priority', ff__policy_int(v_policy, '', 'priority', -2147483648, 2147483647),
        'delay_until_ms', ff__policy_int(v_policy, '', 'delay_until_ms', 0, ff__last_ms()),
        'timeout_policy', nullif(jsonb_strip_nulls(jsonb_build_object(
            'attempt_timeout_ms', ff__policy_int(v_timeout, 'timeout_policy', 'attempt_timeout_ms', 1, v_max),
            'execution_deadline_ms',
                ff__policy_int(v_timeout, 'timeout_policy', 'execution_deadline_ms', 1, v_max))), '{}'),
        'max_reclaim_count', ff__policy_int(v_policy, '', 'max_reclaim_count', 0, 2147483647,
            ff__policy_int(v_timeout, 'timeout_policy', 'max_reclaim_count', 0, 2147483647, 100)),
        'max_replay_count', ff__policy_int(v_policy, '', 'max_replay_count', 0, 2147483647, 10),
        'dedup_window_ms', ff__policy_int(v_policy, '', 'dedup_window_ms', 0, v_max, 604800000),
        'retention_ms', ff__policy_int(v_policy, '', 'retention_ms', 0, v_max),
        'budget_ids', nullif(ff__policy_texts(v_policy, '', 'budget_ids', 16, 200), '[]'),
        'quota_policy_id', v_policy -> 'quota_policy_id',
        'stream_policy', nullif(jsonb_strip_nulls(jsonb_build_object(
            'maxlen', ff__policy_int(v_stream, 'stream_policy', 'maxlen', 1, 1000000))), '{}'),
        'max_signals_per_execution', ff__policy_int(v_policy, '', 'max_signals_per_execution', 0, 2147483647, 10000)))
        || case when v_policy ? 'retry_policy'
                then jsonb_build_object('retry_policy', ff__normal_retry_policy(v_policy -> 'retry_policy', p_now_ms))
                else '{}' end
        || case when v_routing <> '{}' then jsonb_build_object('routing_requirements', v_routing) else '{}' end
        || case when v_policy ? 'suspension_policy'
                then jsonb_build_object('suspension_policy', v_policy -> 'suspension_policy') else '{}' end
        || case when v_policy ? 'fallback_policy'
                then jsonb_build_object('fallback_policy', v_policy -> 'fallback_policy') else '{}' end;
end
$$;
