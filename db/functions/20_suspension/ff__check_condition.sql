-- A node of a resume condition with all below it. targets: what it waits for in the order of the tree, an array of pairs
-- [waitpoint key, names or null for any]. nodes counts on from p_nodes. p_execution_id is asked for its signal cap only
-- when a node counts signals. Errors: invalid_resume_condition (DETAIL.reason, DETAIL.path).
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
        perform ff__condition_fault('too_many_nodes', p_path);
    elsif jsonb_typeof(p_node) <> 'object' then
        perform ff__condition_fault('not_an_object', p_path);
    elsif v_kind is null or jsonb_typeof(p_node -> 'kind') <> 'string' then
        perform ff__condition_fault(case when p_node ? 'kind' then 'wrong_type' else 'missing_key' end, p_path);
    end if;
    v_needs := (case v_kind
        when 'single' then '{kind,waitpoint_key,matcher}'
        when 'all_of' then '{kind,members}'
        when 'count' then '{kind,n,count_kind,waitpoints}'
        when 'operator_only' then '{kind}'
        when 'timeout_only' then '{kind}' end)::text[];
    if v_needs is null then
        perform ff__condition_fault('unknown_kind', p_path);
    elsif p_node - v_needs - (case v_kind when 'count' then 'matcher' else 'kind' end) <> '{}' then
        perform ff__condition_fault('unknown_key', p_path);
    elsif not p_node ?& v_needs then
        perform ff__condition_fault('missing_key', p_path);
    end if;

    if v_kind = 'single' then
        if jsonb_typeof(p_node -> 'waitpoint_key') <> 'string'
           or not ff__is_name(p_node ->> 'waitpoint_key', p_max_chars) then
            perform ff__condition_fault('wrong_type', p_path);
        end if;
        v_names := ff__check_matcher(p_node -> 'matcher', p_path, p_max_chars);
        targets := jsonb_build_array(jsonb_build_array(p_node -> 'waitpoint_key', v_names));
    elsif v_kind = 'all_of' then
        if p_depth > 4 then
            perform ff__condition_fault('depth_exceeded', p_path);
        elsif jsonb_typeof(p_node -> 'members') <> 'array' then
            perform ff__condition_fault('wrong_type', p_path);
        elsif p_node -> 'members' = '[]' then
            perform ff__condition_fault('allof_empty_members', p_path);
        end if;
        for v_member in select x.node, x.n from jsonb_array_elements(p_node -> 'members') with ordinality x(node, n) loop
            v := ff__check_condition(v_member.node, p_execution_id, p_max_nodes, p_max_chars,
                                     concat_ws('.', nullif(p_path, ''), format('members[%s]', v_member.n - 1)),
                                     p_depth + 1, nodes);
            nodes := v.nodes;
            targets := targets || v.targets;
        end loop;
    elsif v_kind = 'count' then
        if p_depth > 4 then
            perform ff__condition_fault('depth_exceeded', p_path);
        elsif jsonb_typeof(p_node -> 'n') <> 'number' then
            perform ff__condition_fault('count_n_zero', p_path);
        end if;
        v_count := (p_node -> 'n')::numeric;
        if v_count < 1 or v_count <> trunc(v_count) then
            perform ff__condition_fault('count_n_zero', p_path);
        elsif jsonb_typeof(p_node -> 'count_kind') <> 'string'
              or p_node ->> 'count_kind' not in ('distinct_waitpoints', 'distinct_signals', 'distinct_sources')
              or jsonb_typeof(p_node -> 'waitpoints') <> 'array' then
            perform ff__condition_fault('wrong_type', p_path);
        elsif p_node -> 'waitpoints' = '[]' then
            perform ff__condition_fault('count_waitpoints_empty', p_path);
        end if;
        v_names := ff__check_matcher(coalesce(p_node -> 'matcher', '"wildcard"'), p_path, p_max_chars);
        for v_key in select x.key from jsonb_array_elements(p_node -> 'waitpoints') x(key) loop
            if jsonb_typeof(v_key) <> 'string' or not ff__is_name(v_key #>> '{}', p_max_chars) then
                perform ff__condition_fault('wrong_type', p_path);
            end if;
        end loop;
        if jsonb_array_length(p_node -> 'waitpoints')
           <> (select count(distinct x.key) from jsonb_array_elements(p_node -> 'waitpoints') x(key)) then
            perform ff__condition_fault('count_waitpoints_duplicate', p_path);
        elsif p_node ->> 'count_kind' = 'distinct_waitpoints' then
            if v_count > jsonb_array_length(p_node -> 'waitpoints') then
                perform ff__condition_fault('count_exceeds_waitpoint_set', p_path);
            end if;
        elsif v_count > ff__max_signals(p_execution_id) then
            perform ff__condition_fault('count_exceeds_signal_cap', p_path);
        end if;
        targets := (select jsonb_agg(jsonb_build_array(x.key, v_names) order by x.n)
                      from jsonb_array_elements(p_node -> 'waitpoints') with ordinality x(key, n));
    elsif p_path <> '' then
        perform ff__condition_fault('unsatisfiable_member', p_path);
    end if;
end
$$;
