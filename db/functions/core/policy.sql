-- The stored policy of an execution that was created without one.
create or replace function ff__default_policy() returns jsonb
language sql immutable parallel safe
as $$
    select jsonb '{"max_reclaim_count": 100, "max_replay_count": 10, "dedup_window_ms": 604800000,
                   "max_signals_per_execution": 10000}'
$$;

-- Normalizes a policy for storage: checks every level, writes out defaults (a later change of a default does not affect
-- it), removes JSON nulls. required_capabilities are unchanged: the caller checks them together with the execution's
-- own. Times and durations counted from p_now_ms are bounded by ff__max_time_ms.
-- Errors: invalid_input (NULL), invalid_policy (DETAIL.path).
create or replace function ff__normal_policy(p_policy jsonb, p_now_ms bigint) returns jsonb
language plpgsql stable
as $$
declare
    v_max constant bigint := ff__max_time_ms(p_now_ms);
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
            perform ff__raise_invalid_policy(v_key, 'must be an object');
        end if;
    end loop;
    if v_policy ? 'quota_policy_id' and (jsonb_typeof(v_policy -> 'quota_policy_id') <> 'string'
                                         or length(v_policy ->> 'quota_policy_id') not between 1 and 200) then
        perform ff__raise_invalid_policy('quota_policy_id', 'must be a string of 1 to 200 characters');
    end if;
    return jsonb_strip_nulls(jsonb_build_object(
        'priority', ff__policy_int(v_policy, '', 'priority', -2147483648, 2147483647),
        'delay_until_ms', ff__policy_int(v_policy, '', 'delay_until_ms', 0, ff__max_time_ms()),
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

-- The retry part of a policy with its defaults written out. Errors: invalid_policy (DETAIL.path).
create or replace function ff__normal_retry_policy(p_retry jsonb, p_now_ms bigint) returns jsonb
language plpgsql stable
as $$
declare
    v_max constant bigint := ff__max_time_ms(p_now_ms);
    v_retry jsonb := ff__policy_object(p_retry, 'retry_policy', '{max_retries,backoff,retryable_categories}');
    v_backoff jsonb := coalesce(v_retry -> 'backoff', '{}');
    v_type text;
    v_multiplier jsonb;
begin
    if jsonb_typeof(v_backoff) <> 'object' then
        perform ff__raise_invalid_policy('retry_policy.backoff', 'must be an object');
    end if;
    v_type := coalesce(nullif(v_backoff -> 'type', 'null') #>> '{}', 'exponential');
    if v_type = 'fixed' then
        v_backoff := ff__policy_object(v_backoff, 'retry_policy.backoff', '{type,delay_ms}');
        if not v_backoff ? 'delay_ms' then
            perform ff__raise_invalid_policy('retry_policy.backoff.delay_ms', 'is required for a fixed backoff');
        end if;
        v_backoff := jsonb_build_object(
            'type', 'fixed',
            'delay_ms', ff__policy_int(v_backoff, 'retry_policy.backoff', 'delay_ms', 0, v_max));
    elsif v_type = 'exponential' then
        v_backoff := ff__policy_object(v_backoff, 'retry_policy.backoff',
                                       '{type,initial_delay_ms,max_delay_ms,multiplier,jitter}');
        v_multiplier := coalesce(v_backoff -> 'multiplier', '2');
        if jsonb_typeof(v_multiplier) <> 'number' or v_multiplier::numeric not between 1 and 1000000 then
            perform ff__raise_invalid_policy('retry_policy.backoff.multiplier',
                                             'must be a number between 1 and 1000000');
        elsif jsonb_typeof(coalesce(v_backoff -> 'jitter', 'false')) <> 'boolean' then
            perform ff__raise_invalid_policy('retry_policy.backoff.jitter', 'must be true or false');
        end if;
        v_backoff := jsonb_build_object(
            'type', 'exponential',
            'initial_delay_ms', ff__policy_int(v_backoff, 'retry_policy.backoff', 'initial_delay_ms', 0, v_max, 1000),
            'max_delay_ms', ff__policy_int(v_backoff, 'retry_policy.backoff', 'max_delay_ms', 0, v_max, 60000),
            'multiplier', v_multiplier,
            'jitter', coalesce(v_backoff -> 'jitter', 'false'));
    else
        perform ff__raise_invalid_policy('retry_policy.backoff.type', 'must be fixed or exponential');
    end if;
    return jsonb_build_object(
        'max_retries', ff__policy_int(v_retry, 'retry_policy', 'max_retries', 0, 1000, 3),
        'backoff', v_backoff,
        'retryable_categories', coalesce(ff__policy_texts(v_retry, 'retry_policy', 'retryable_categories', 1000, 256),
                                         '[]'));
end
$$;

-- The required_capabilities inside a policy, as an array. Errors: invalid_capabilities.
create or replace function ff__policy_capabilities(p_policy jsonb) returns text[]
language plpgsql stable
as $$
declare
    v_tokens jsonb := p_policy #> '{routing_requirements,required_capabilities}';
begin
    if v_tokens is null then
        return '{}'::text[];
    elsif jsonb_typeof(v_tokens) <> 'array'
          or exists (select from jsonb_array_elements(v_tokens) x(item) where jsonb_typeof(x.item) <> 'string') then
        perform ff__raise('invalid_capabilities', 'required_capabilities of the policy must be an array of strings',
                          '{"arg": "p_policy", "reason": "wrong_type",
                            "path": "routing_requirements.required_capabilities"}');
    end if;
    return array(select x.item from jsonb_array_elements_text(v_tokens) x(item));
end
$$;

-- Raises invalid_policy for one path of a policy.
create or replace function ff__raise_invalid_policy(p_path text, p_reason text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_policy', concat_ws(' ', 'policy', nullif(p_path, ''), p_reason),
                      jsonb_build_object('path', p_path, 'reason', p_reason));
end
$$;

-- One integer of a policy, or p_default if it is absent. Errors: invalid_policy (DETAIL.path).
create or replace function ff__policy_int(
    p_object jsonb, p_path text, p_key text, p_min bigint, p_max bigint, p_default bigint default null
) returns bigint
language plpgsql stable
as $$
declare
    v_path text := concat_ws('.', nullif(p_path, ''), p_key);
    v_value jsonb := p_object -> p_key;
    v_number numeric;
begin
    if v_value is null then
        return p_default;
    elsif jsonb_typeof(v_value) <> 'number' then
        perform ff__raise_invalid_policy(v_path, 'must be a number');
    end if;
    v_number := v_value::numeric;
    if v_number not between p_min and p_max or v_number <> trunc(v_number) then
        perform ff__raise_invalid_policy(v_path, format('must be a whole number between %s and %s', p_min, p_max));
    end if;
    return v_number::bigint;
end
$$;

-- Checks one level of a policy: an object with no other keys than p_keys. Returns it without its JSON nulls, which mean
-- "absent". Errors: invalid_policy (DETAIL.path).
create or replace function ff__policy_object(p_value jsonb, p_path text, p_keys text[]) returns jsonb
language plpgsql stable
as $$
declare
    v_unknown text;
begin
    if jsonb_typeof(p_value) <> 'object' then
        perform ff__raise_invalid_policy(p_path, 'must be an object');
    end if;
    select min(k.key) into v_unknown from jsonb_object_keys(p_value) k(key) where k.key <> all (p_keys);
    if v_unknown is not null then
        perform ff__raise_invalid_policy(concat_ws('.', nullif(p_path, ''), left(v_unknown, 64)), 'is not a known key');
    end if;
    return (select coalesce(jsonb_object_agg(t.key, t.value), '{}')
              from jsonb_each(p_value) t where jsonb_typeof(t.value) <> 'null');
end
$$;

-- A list of strings of a policy, without duplicates, in the order given, or NULL if absent.
-- Errors: invalid_policy (DETAIL.path).
create or replace function ff__policy_texts(
    p_object jsonb, p_path text, p_key text, p_max_items int, p_max_chars int
) returns jsonb
language plpgsql stable
as $$
declare
    v_path text := concat_ws('.', nullif(p_path, ''), p_key);
    v_value jsonb := p_object -> p_key;
begin
    if v_value is null then
        return null;
    elsif jsonb_typeof(v_value) <> 'array' then
        perform ff__raise_invalid_policy(v_path, 'must be an array of strings');
    elsif jsonb_array_length(v_value) > p_max_items then
        perform ff__raise_invalid_policy(v_path, format('must have at most %s items', p_max_items));
    elsif exists (select from jsonb_array_elements(v_value) x(item)
                   where jsonb_typeof(x.item) <> 'string'
                      or length(x.item #>> '{}') not between 1 and p_max_chars
                      or x.item #>> '{}' ~ E'[\\x01-\\x1f\\x7f]') then
        perform ff__raise_invalid_policy(
            v_path, format('must hold strings of 1 to %s characters, none a control character', p_max_chars));
    end if;
    return (select coalesce(jsonb_agg(x.item order by x.at), '[]')
              from (select y.item, min(y.at) as at
                      from jsonb_array_elements(v_value) with ordinality y(item, at) group by y.item) x);
end
$$;
