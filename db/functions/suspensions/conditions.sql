-- Returns the waitpoints that a suspension binds, in order. If none is given: a new one per key of the condition
-- (p_targets, see ff__check_condition), or one without a key for conditions that name no key. A pending waitpoint that
-- this execution does not have is rejected later, by the suspension. Errors: invalid_waitpoint_binding (DETAIL.reason).
create or replace function ff__check_bindings(
    p_waitpoints jsonb, p_targets jsonb, p_execution_id uuid, p_max_chars int
) returns ff_binding[]
language plpgsql stable
as $$
declare
    c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
    v_max int := ff__engine_limit('max_waitpoints_per_suspension');
    v_given int := 0;
    v_keys text[] := array(select x.key from (select t.pair ->> 0 as key, min(t.n) as n
                                                from jsonb_array_elements(p_targets) with ordinality t(pair, n)
                                               group by 1) x order by x.n);
    v_bindings ff_binding[] := '{}'::ff_binding[];
    v_id jsonb;
    v_one record;
    b ff_binding;
begin
    if jsonb_typeof(p_waitpoints) <> 'array' then
        perform ff__raise_invalid_binding('wrong_type');
    elsif p_waitpoints is not null then
        v_given := jsonb_array_length(p_waitpoints);
    end if;
    if greatest(v_given, cardinality(v_keys)) > v_max then
        perform ff__raise_invalid_binding('too_many', jsonb_build_object('limit', v_max));
    elsif v_given = 0 then
        return case when v_keys = '{}' then array[(null, null, false)::ff_binding]
                    else array(select (k.key, null, false)::ff_binding
                                 from unnest(v_keys) with ordinality k(key, n) order by k.n) end;
    end if;

    for v_one in select x.item, x.n - 1 as index from jsonb_array_elements(p_waitpoints) with ordinality x(item, n) loop
        if jsonb_typeof(v_one.item) <> 'object' then
            perform ff__raise_invalid_binding('wrong_type', jsonb_build_object('index', v_one.index));
        end if;
        b.pending := v_one.item ? 'use_pending';
        v_id := v_one.item -> case when b.pending then 'use_pending' else 'waitpoint_id' end;
        if v_one.item - (case when b.pending then '{use_pending}' else '{key,waitpoint_id}' end)::text[] <> '{}' then
            perform ff__raise_invalid_binding('unknown_key', jsonb_build_object('index', v_one.index));
        elsif v_id is not null and (jsonb_typeof(v_id) <> 'string' or v_id #>> '{}' !~ c_uuid) then
            perform ff__raise_invalid_binding('wrong_type', jsonb_build_object('index', v_one.index));
        end if;
        b.waitpoint_id := (v_id #>> '{}')::uuid;
        if b.pending then
            b.waitpoint_key := (select w.waitpoint_key from ff_waitpoint w
                                 where w.waitpoint_id = b.waitpoint_id and w.execution_id = p_execution_id);
        elsif jsonb_typeof(v_one.item -> 'key') = 'string' and ff__is_name(v_one.item ->> 'key', p_max_chars) then
            b.waitpoint_key := v_one.item ->> 'key';
        else
            perform ff__raise_invalid_binding('wrong_type', jsonb_build_object('index', v_one.index));
        end if;
        if exists (select from unnest(v_bindings) o where o.waitpoint_key = b.waitpoint_key) then
            perform ff__raise_invalid_binding('duplicate_waitpoint_key', jsonb_build_object('key', b.waitpoint_key));
        elsif v_keys <> '{}' and b.waitpoint_key <> all (v_keys) then
            perform ff__raise_invalid_binding('binding_not_referenced', jsonb_build_object('key', b.waitpoint_key));
        end if;
        v_bindings := v_bindings || b;
    end loop;
    if not exists (select from unnest(v_bindings) o where o.waitpoint_key is null) then
        for v_one in select k.key from unnest(v_keys) with ordinality k(key, n) order by k.n loop
            if not exists (select from unnest(v_bindings) o where o.waitpoint_key = v_one.key) then
                perform ff__raise_invalid_binding('waitpoint_key_not_bound', jsonb_build_object('key', v_one.key));
            end if;
        end loop;
    end if;
    return v_bindings;
end
$$;

-- Raises invalid_waitpoint_binding.
create or replace function ff__raise_invalid_binding(p_reason text, p_detail jsonb default '{}') returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_waitpoint_binding', format('the waitpoints do not fit the condition: %s', p_reason),
                      jsonb_build_object('reason', p_reason) || p_detail);
end
$$;

-- Checks a node of a resume condition with all nodes below it. targets: what the node waits for, in tree order, an
-- array of pairs [waitpoint key, names or null for any]. nodes: p_nodes plus the number of nodes. The signal cap of
-- p_execution_id is read only when a node counts signals. Errors: invalid_resume_condition (DETAIL.reason,
-- DETAIL.path).
create or replace function ff__check_condition(
    p_node jsonb,
    p_execution_id uuid,
    p_max_nodes int,
    p_max_chars int,
    p_path text default '',
    p_depth int default 1,
    p_nodes int default 0,
    out nodes int,
    out targets jsonb
)
language plpgsql stable
as $$
declare
    v_kind text := p_node ->> 'kind';
    v_needs text[];
    v_names jsonb;
    v_key jsonb;
    v_count numeric;
    v_member record;
    v record;
begin
    nodes := p_nodes + 1;
    targets := '[]';
    if nodes > p_max_nodes then
        perform ff__raise_invalid_condition('too_many_nodes', p_path);
    elsif jsonb_typeof(p_node) <> 'object' then
        perform ff__raise_invalid_condition('not_an_object', p_path);
    elsif v_kind is null or jsonb_typeof(p_node -> 'kind') <> 'string' then
        perform ff__raise_invalid_condition(case when p_node ? 'kind' then 'wrong_type' else 'missing_key' end, p_path);
    end if;
    v_needs := (case v_kind
        when 'single' then '{kind,waitpoint_key,matcher}'
        when 'all_of' then '{kind,members}'
        when 'count' then '{kind,n,count_kind,waitpoints}'
        when 'operator_only' then '{kind}'
        when 'timeout_only' then '{kind}' end)::text[];
    if v_needs is null then
        perform ff__raise_invalid_condition('unknown_kind', p_path);
    elsif p_node - v_needs - (case v_kind when 'count' then 'matcher' else 'kind' end) <> '{}' then
        perform ff__raise_invalid_condition('unknown_key', p_path);
    elsif not p_node ?& v_needs then
        perform ff__raise_invalid_condition('missing_key', p_path);
    end if;

    if v_kind = 'single' then
        if jsonb_typeof(p_node -> 'waitpoint_key') <> 'string'
           or not ff__is_name(p_node ->> 'waitpoint_key', p_max_chars) then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        end if;
        v_names := ff__check_matcher(p_node -> 'matcher', p_path, p_max_chars);
        targets := jsonb_build_array(jsonb_build_array(p_node -> 'waitpoint_key', v_names));
    elsif v_kind = 'all_of' then
        if p_depth > 4 then
            perform ff__raise_invalid_condition('depth_exceeded', p_path);
        elsif jsonb_typeof(p_node -> 'members') <> 'array' then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        elsif p_node -> 'members' = '[]' then
            perform ff__raise_invalid_condition('allof_empty_members', p_path);
        end if;
        for v_member in
            select x.node, x.n from jsonb_array_elements(p_node -> 'members') with ordinality x(node, n)
        loop
            v := ff__check_condition(v_member.node, p_execution_id, p_max_nodes, p_max_chars,
                                     concat_ws('.', nullif(p_path, ''), format('members[%s]', v_member.n - 1)),
                                     p_depth + 1, nodes);
            nodes := v.nodes;
            targets := targets || v.targets;
        end loop;
    elsif v_kind = 'count' then
        if p_depth > 4 then
            perform ff__raise_invalid_condition('depth_exceeded', p_path);
        elsif jsonb_typeof(p_node -> 'n') <> 'number' then
            perform ff__raise_invalid_condition('count_n_zero', p_path);
        end if;
        v_count := (p_node -> 'n')::numeric;
        if v_count < 1 or v_count <> trunc(v_count) then
            perform ff__raise_invalid_condition('count_n_zero', p_path);
        elsif jsonb_typeof(p_node -> 'count_kind') <> 'string'
              or p_node ->> 'count_kind' not in ('distinct_waitpoints', 'distinct_signals', 'distinct_sources')
              or jsonb_typeof(p_node -> 'waitpoints') <> 'array' then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        elsif p_node -> 'waitpoints' = '[]' then
            perform ff__raise_invalid_condition('count_waitpoints_empty', p_path);
        end if;
        v_names := ff__check_matcher(coalesce(p_node -> 'matcher', '"wildcard"'), p_path, p_max_chars);
        for v_key in select x.key from jsonb_array_elements(p_node -> 'waitpoints') x(key) loop
            if jsonb_typeof(v_key) <> 'string' or not ff__is_name(v_key #>> '{}', p_max_chars) then
                perform ff__raise_invalid_condition('wrong_type', p_path);
            end if;
        end loop;
        if jsonb_array_length(p_node -> 'waitpoints')
           <> (select count(distinct x.key) from jsonb_array_elements(p_node -> 'waitpoints') x(key)) then
            perform ff__raise_invalid_condition('count_waitpoints_duplicate', p_path);
        elsif p_node ->> 'count_kind' = 'distinct_waitpoints' then
            if v_count > jsonb_array_length(p_node -> 'waitpoints') then
                perform ff__raise_invalid_condition('count_exceeds_waitpoint_set', p_path);
            end if;
        elsif v_count > ff__max_signals(p_execution_id) then
            perform ff__raise_invalid_condition('count_exceeds_signal_cap', p_path);
        end if;
        targets := (select jsonb_agg(jsonb_build_array(x.key, v_names) order by x.n)
                      from jsonb_array_elements(p_node -> 'waitpoints') with ordinality x(key, n));
    elsif p_path <> '' then
        perform ff__raise_invalid_condition('unsatisfiable_member', p_path);
    end if;
end
$$;

-- Returns the signal names of a matcher as a json array; json null for any name. p_path is the path of the node.
-- Errors: invalid_resume_condition.
create or replace function ff__check_matcher(p_matcher jsonb, p_path text, p_max_chars int) returns jsonb
language plpgsql stable
as $$
declare
    v_names jsonb;
    v_name jsonb;
begin
    if p_matcher = '"wildcard"' then
        return 'null'::jsonb;
    elsif jsonb_typeof(p_matcher) <> 'object' then
        perform ff__raise_invalid_condition('wrong_type', p_path);
    elsif p_matcher - 'by_name' = '{}' and p_matcher <> '{}' then
        v_names := jsonb_build_array(p_matcher -> 'by_name');
    elsif p_matcher - 'one_of' = '{}' and p_matcher <> '{}' then
        v_names := p_matcher -> 'one_of';
        if jsonb_typeof(v_names) <> 'array' then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        elsif jsonb_array_length(v_names) not between 1 and 32
              or jsonb_array_length(v_names)
                 <> (select count(distinct x.name) from jsonb_array_elements(v_names) x(name))
        then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        end if;
    else
        perform ff__raise_invalid_condition(case p_matcher when '{}' then 'missing_key' else 'unknown_key' end, p_path);
    end if;
    for v_name in select x.name from jsonb_array_elements(v_names) x(name) loop
        if jsonb_typeof(v_name) <> 'string' then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        elsif v_name = '""' then
            perform ff__raise_invalid_condition('empty_signal_name', p_path);
        elsif v_name #>> '{}' like E'\\_\\_%' then
            perform ff__raise_invalid_condition('reserved_signal_name', p_path);
        elsif not ff__is_name(v_name #>> '{}', p_max_chars) then
            perform ff__raise_invalid_condition('wrong_type', p_path);
        end if;
    end loop;
    return v_names;
end
$$;

-- Raises invalid_resume_condition for one node.
create or replace function ff__raise_invalid_condition(p_reason text, p_path text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_resume_condition',
                      format('the resume condition is not acceptable%s: %s',
                             case when p_path = '' then '' else ' at ' || p_path end, p_reason),
                      jsonb_build_object('reason', p_reason, 'path', p_path));
end
$$;
