-- The retry part of a policy with its defaults written out. Errors: invalid_policy (DETAIL.path).
create or replace function ff__normal_retry_policy(p_retry jsonb, p_now_ms bigint) returns jsonb
language plpgsql stable
as $$
declare
    v_max constant bigint := ff__last_ms(p_now_ms);
    v_retry jsonb := ff__policy_object(p_retry, 'retry_policy', '{max_retries,backoff,retryable_categories}');
    v_backoff jsonb := coalesce(v_retry -> 'backoff', '{}');
    v_type text;
    v_multiplier jsonb;
begin
    if jsonb_typeof(v_backoff) <> 'object' then
        perform ff__policy_fault('retry_policy.backoff', 'must be an object');
    end if;
    v_type := coalesce(nullif(v_backoff -> 'type', 'null') #>> '{}', 'exponential');
    if v_type = 'fixed' then
        v_backoff := ff__policy_object(v_backoff, 'retry_policy.backoff', '{type,delay_ms}');
        if not v_backoff ? 'delay_ms' then
            perform ff__policy_fault('retry_policy.backoff.delay_ms', 'is required for a fixed backoff');
        end if;
        v_backoff := jsonb_build_object(
            'type', 'fixed',
            'delay_ms', ff__policy_int(v_backoff, 'retry_policy.backoff', 'delay_ms', 0, v_max));
    elsif v_type = 'exponential' then
        v_backoff := ff__policy_object(v_backoff, 'retry_policy.backoff',
                                       '{type,initial_delay_ms,max_delay_ms,multiplier,jitter}');
        v_multiplier := coalesce(v_backoff -> 'multiplier', '2');
        if jsonb_typeof(v_multiplier) <> 'number' or v_multiplier::numeric not between 1 and 1000000 then
            perform ff__policy_fault('retry_policy.backoff.multiplier', 'must be a number between 1 and 1000000');
        elsif jsonb_typeof(coalesce(v_backoff -> 'jitter', 'false')) <> 'boolean' then
            perform ff__policy_fault('retry_policy.backoff.jitter', 'must be true or false');
        end if;
        v_backoff := jsonb_build_object(
            'type', 'exponential',
            'initial_delay_ms', ff__policy_int(v_backoff, 'retry_policy.backoff', 'initial_delay_ms', 0, v_max, 1000),
            'max_delay_ms', ff__policy_int(v_backoff, 'retry_policy.backoff', 'max_delay_ms', 0, v_max, 60000),
            'multiplier', v_multiplier,
            'jitter', coalesce(v_backoff -> 'jitter', 'false'));
    else
        perform ff__policy_fault('retry_policy.backoff.type', 'must be fixed or exponential');
    end if;
    return jsonb_build_object(
        'max_retries', ff__policy_int(v_retry, 'retry_policy', 'max_retries', 0, 1000, 3),
        'backoff', v_backoff,
        'retryable_categories', coalesce(ff__policy_texts(v_retry, 'retry_policy', 'retryable_categories', 1000, 256),
                                         '[]'));
end
$$;
