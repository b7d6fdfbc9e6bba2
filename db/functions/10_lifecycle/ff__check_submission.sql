-- Checks everything a submission says about itself but its lane, and takes its policy apart.
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
        -- A time in the past is no delay, however far back it lies.
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
            perform ff__no_quota_policy(s.quota_policy_id);
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
    s.state := case when s.delay_until_ms is null then 'ready' else 'delayed' end;
    s.policy := nullif(s.policy, ff__default_policy());
    return s;
end
$$;
