-- Locks: the flow's id, idempotency keys and unknown lanes in their order (waits for them). All or nothing, set-based: the
-- time grows with the number of nodes and edges. Not repeatable: a flow id is used once.
create or replace function ff_submit_flow(
    p_nodes jsonb,
    p_edges jsonb default '[]',
    p_groups jsonb default '[]',
    p_flow_id uuid default null,
    p_flow_kind text default 'dag',
    p_namespace text default 'default',
    p_tags jsonb default '{}'
) returns table (flow_id uuid, node_key text, execution_id text)
language plpgsql volatile security definer
as $$
declare
    c_node constant jsonb := jsonb '{"key": "string", "lane_id": "string", "execution_kind": "string", "payload": "string",
        "payload_base64": "string", "idempotency_key": "string", "priority": "number", "policy": "object", "tags": "object",
        "required_capabilities": "array", "delay_until_ms": "number", "delay_ms": "number", "deadline_at_ms": "number",
        "namespace": "string", "execution_id": "string", "payload_encoding": "string", "creator": "string"}';
    c_edge constant jsonb := jsonb '{"from": "string", "to": "string", "dependency_kind": "string",
        "data_passing_ref": "string"}';
    c_group constant jsonb := jsonb '{"to": "string", "policy": "string", "k": "number", "on_satisfied": "string"}';
    v_now bigint := ff__now_ms();
    v_flow uuid := coalesce(p_flow_id, ff__mint_id(v_now));
    v_partition smallint := ff__partition(v_flow);
    v_nodes jsonb[];
    v_keys text[];
    v_key text;
    v_from int[];
    v_to int[];
    v_cycle int[];
    v_ids uuid[];
    v_limited boolean[];
    v_made int;
    v_hashes bytea[];
    v_payloads bytea[];
    v_subs ff_submission[];
    v_count int;
    v_state text;
    v_message text;
    v_detail text;
    v_hint text;
    r record;
begin
    perform ff__check_items('p_nodes', p_nodes, 100000, c_node, '{key,lane_id}');
    perform ff__check_items('p_edges', p_edges, 1000000, c_edge, '{from,to}');
    perform ff__check_items('p_groups', p_groups, 100000, c_group, '{to,policy}');
    v_count := jsonb_array_length(p_nodes);
    if v_count = 0 then
        perform ff__invalid('p_nodes', 'must have a node');
    end if;
    select array_agg(x.node order by x.n), array_agg(x.node ->> 'key' order by x.n) into v_nodes, v_keys
      from jsonb_array_elements(p_nodes) with ordinality x(node, n);
    for r in
        select x.key, min(x.n) filter (where x.again > 1) as n
          from (select k.key, k.n, row_number() over (partition by k.key order by k.n) as again
                  from unnest(v_keys) with ordinality k(key, n)) x
         group by x.key
        having count(*) > 1 or octet_length(x.key) not between 1 and 256
         order by 2 limit 1
    loop
        perform ff__invalid('p_nodes', case when r.n is null then 'has a key that is empty or longer than 256 bytes'
                                            else 'has a key twice' end,
                            jsonb_build_object('index', r.n - 1, 'key', left(r.key, 256)));
    end loop;
    select array_agg(f.n order by x.n), array_agg(t.n order by x.n) into v_from, v_to
      from jsonb_array_elements(p_edges) with ordinality x(edge, n)
      left join unnest(v_keys) with ordinality f(key, n) on f.key = x.edge ->> 'from'
      left join unnest(v_keys) with ordinality t(key, n) on t.key = x.edge ->> 'to';
    v_from := coalesce(v_from, '{}');
    v_to := coalesce(v_to, '{}');
    for r in select x.n from unnest(v_from, v_to) with ordinality x(f, t, n) where x.f is null or x.t is null
              order by x.n limit 1 loop
        perform ff__invalid('p_edges', 'names a node that is not there', jsonb_build_object('index', r.n - 1));
    end loop;
    for r in
        select min(x.n) as n, count(*) as times
          from jsonb_array_elements(p_groups) with ordinality x(item, n)
          left join unnest(v_keys) k(key) on k.key = x.item ->> 'to'
         group by x.item ->> 'to', k.key having count(*) > 1 or k.key is null order by 1 limit 1
    loop
        perform ff__invalid('p_groups', case when r.times > 1 then 'has a node twice'
                                             else 'names a node that is not there' end,
                            jsonb_build_object('index', r.n - 1));
    end loop;

    perform ff__check_flow(p_flow_kind, p_namespace, p_tags);
    if (ff__insert_flow(v_flow, p_flow_kind, p_namespace, 'open', p_tags)).flow_id is null then
        perform ff__flow_conflict(v_flow);
    end if;

    -- Sorted, so that what is equally urgent is handed out in the order of the nodes.
    v_ids := array(select x.id from (select ff__mint_id(v_now, v_partition) as id from generate_series(1, v_count)) x
                    order by x.id);
    begin
        for i in 1..v_count loop
            v_key := v_keys[i];
            v_subs[i] := ff__check_node(v_nodes[i], p_namespace, v_now);
            if v_nodes[i] ->> 'execution_id' is not null then
                v_ids[i] := ff__node_id(v_flow, v_nodes[i] ->> 'execution_id');
            end if;
            v_payloads[i] := case when v_nodes[i] ->> 'payload_base64' is not null
                                  then decode(v_nodes[i] ->> 'payload_base64', 'base64')
                                  else convert_to(v_nodes[i] ->> 'payload', 'UTF8') end;
            if octet_length(v_payloads[i]) > 1024 then
                perform ff__check_size('max_execution_bytes', 'payload', v_payloads[i]);
            end if;
        end loop;
    exception when others then
        -- The same error, and which node it is about.
        get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_detail = pg_exception_detail,
                                v_hint = pg_exception_hint;
        if v_state not like 'WF%' then
            raise;
        end if;
        perform ff__raise(v_detail::jsonb ->> 'kind', format('node %s: %s', v_key, v_message),
                          v_detail::jsonb || jsonb_build_object('node', v_key), v_hint);
    end;
    if (select count(distinct x.id) from unnest(v_ids) x(id)) < v_count then
        perform ff__invalid('p_nodes', 'uses an execution id twice');
    end if;

    -- The graph.
    for r in
        select x.n, f.f = f.t as self, x.edge, x.edge ->> 'dependency_kind' as kind,
               row_number() over (partition by f.f, f.t order by x.n) > 1 as again
          from jsonb_array_elements(p_edges) with ordinality x(edge, n)
          join unnest(v_from, v_to) with ordinality f(f, t, n) on f.n = x.n
         order by x.n
    loop
        if r.self then
            perform ff__raise('self_referencing_edge', 'an execution cannot wait for itself',
                              jsonb_build_object('index', r.n - 1, 'node', r.edge -> 'from'));
        elsif r.kind not in ('success_only', 'any_terminal') then
            perform ff__raise('invalid_dependency_kind', 'the kind must be success_only or any_terminal',
                              jsonb_build_object('index', r.n - 1, 'dependency_kind', left(r.kind, 64)));
        elsif octet_length(r.edge ->> 'data_passing_ref') > 4096 then
            perform ff__invalid('p_edges', 'has a data_passing_ref of more than 4096 bytes',
                                jsonb_build_object('index', r.n - 1));
        elsif r.again then
            perform ff__raise('dependency_already_exists', 'two edges link the same two nodes',
                              jsonb_build_object('index', r.n - 1, 'from', r.edge -> 'from', 'to', r.edge -> 'to'));
        end if;
    end loop;
    for r in select x.item, x.n from jsonb_array_elements(p_groups) with ordinality x(item, n) order by x.n loop
        perform ff__check_group_policy(r.item ->> 'policy',
                                       ff__json_int('p_groups', r.item, 'k', -2147483648, 2147483647)::int,
                                       coalesce(r.item ->> 'on_satisfied', 'cancel_remaining'));
    end loop;
    v_cycle := ff__find_cycle(v_count, v_from, v_to);
    if v_cycle is not null then
        perform ff__raise('cycle_detected', 'the edges go round in a circle',
                          jsonb_build_object('length', cardinality(v_cycle),
                                             'path', (select jsonb_agg(v_keys[x.node] order by x.n)
                                                        from unnest(v_cycle) with ordinality x(node, n)
                                                       where x.n <= 100)));
    end if;

    -- Keys, ids, lanes: what others may hold, each in its order.
    v_hashes := array(
        select ff__request_hash(s.lane_id, s.execution_kind, v_payloads[s.n], s.payload_encoding, v_flow)
          from unnest(v_subs) with ordinality s(
               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
               caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, n)
         order by s.n);
    for r in
        select s.namespace, x.node ->> 'idempotency_key' as key, s.dedup_window_ms as window_ms, s.n
          from unnest(v_nodes) with ordinality x(node, n)
          join unnest(v_subs) with ordinality s(
               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
               caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, n) on s.n = x.n
         where x.node ->> 'idempotency_key' <> '' and s.dedup_window_ms > 0
         order by s.namespace collate "C", (x.node ->> 'idempotency_key') collate "C", s.n
    loop
        if ff__claim_idempotency_key(r.namespace, r.key, r.window_ms, v_ids[r.n], v_hashes[r.n]) is not null then
            perform ff__raise('idempotency_conflict', 'the idempotency key belongs to another execution',
                              jsonb_build_object('node', v_keys[r.n], 'namespace', r.namespace));
        end if;
    end loop;
    for r in select i.execution_id from unnest(v_ids) x(id) join ff_exec_input i on i.execution_id = x.id limit 1 loop
        perform ff__raise('execution_id_conflict', 'an execution with this id exists',
                          jsonb_build_object('execution_id', ff__wire_id(v_partition, r.execution_id)));
    end loop;
    for r in
        select x.n
          from unnest(v_nodes) with ordinality x(node, n)
         where x.node ->> 'execution_id' is not null
           and ff__id_kept(v_ids[x.n], (v_subs[x.n]).namespace, x.node ->> 'idempotency_key')
         limit 1
    loop
        perform ff__raise('execution_id_conflict',
                          'the id is that of a deleted execution of which events, children or a key are still kept',
                          jsonb_build_object('execution_id', ff__wire_id(v_partition, v_ids[r.n]), 'node', v_keys[r.n]));
    end loop;
    -- Slots may have been asked for under ids that the caller names: the ends of these give them back.
    v_limited := array(
        select s.quota_policy_id is not null or s.budget_ids is not null
               or exists (select from ff_quota_reservation q where q.execution_id = v_ids[s.n])
          from unnest(v_subs) with ordinality s(
               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
               caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, n)
         order by s.n);
    for r in
        select s.lane_id, bool_or(v_limited[s.n]) as limited
          from unnest(v_subs) with ordinality s(
               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
               caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, n)
         group by s.lane_id order by s.lane_id
    loop
        perform ff__open_lane(r.lane_id, v_now);
        if r.limited then
            perform ff__limit_lane(r.lane_id);
        end if;
    end loop;

    insert into ff_exec_input (
        execution_id, created_at_ms, created_at, namespace, execution_kind, creator, payload, payload_encoding, policy,
        tags, required_capabilities, request_hash)
    select v_ids[s.n], v_now, to_timestamp(v_now / 1000::float8), s.namespace, s.execution_kind, s.creator, v_payloads[s.n],
           s.payload_encoding, s.policy, s.tags, s.required_capabilities, v_hashes[s.n]
      from unnest(v_subs) with ordinality s(
           lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities, caps_key,
           priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, n)
    on conflict do nothing;
    get diagnostics v_made = row_count;
    if v_made <> cardinality(v_ids) then
        perform ff__raise('execution_id_conflict', 'an execution with one of these ids has just been made', '{}');
    end if;
    insert into ff_edge (
        flow_id, edge_id, upstream_eid, downstream_eid, dependency_kind, data_passing_ref, edge_state, created_at_ms,
        applied_at_ms)
    select v_flow, ff__mint_id(v_now, v_partition), v_ids[f.f], v_ids[f.t],
           coalesce(x.edge ->> 'dependency_kind', 'success_only'), x.edge ->> 'data_passing_ref', 'applied', v_now, v_now
      from jsonb_array_elements(p_edges) with ordinality x(edge, n)
      join unnest(v_from, v_to) with ordinality f(f, t, n) on f.n = x.n;
    insert into ff_edge_group (flow_id, downstream_eid, policy_kind, k, on_satisfied, group_state, n_edges)
    select v_flow, v_ids[y.node], y.policy, y.k,
           case when y.policy <> 'all_of' then coalesce(y.on_satisfied, 'cancel_remaining') end, 'pending', y.edges
      from (select k.n as node, coalesce(g.item ->> 'policy', 'all_of') as policy, (g.item ->> 'k')::int as k,
                   g.item ->> 'on_satisfied' as on_satisfied, coalesce(c.edges, 0) as edges
              from unnest(v_keys) with ordinality k(key, n)
              left join (select e.t, count(*)::int as edges from unnest(v_to) e(t) group by e.t) c on c.t = k.n
              left join jsonb_array_elements(p_groups) g(item) on g.item ->> 'to' = k.key
             where c.edges > 0 or g.item is not null) y;
    for r in
        select k.key, g.k, g.n_edges
          from ff_edge_group g join unnest(v_ids, v_keys) k(id, key) on k.id = g.downstream_eid
         where g.flow_id = v_flow and g.policy_kind = 'quorum' and g.k > g.n_edges limit 1
    loop
        perform ff__raise('quorum_unreachable', format('a quorum of %s has %s edges', r.k, r.n_edges),
                          jsonb_build_object('downstream', r.key, 'k', r.k, 'n', r.n_edges));
    end loop;
    insert into ff_exec_core (
        execution_id, flow_id, partition_key, namespace, lane_id, caps_key, priority, created_at_ms, retention_ms,
        delay_until_ms, deadline_at_ms, attempt_timeout_ms, tagged, last_transition_at_ms, last_mutation_at_ms,
        lifecycle_phase, ownership_state, eligibility_state, blocking_reason, terminal_outcome, attempt_state, limited,
        quota_policy_id, budget_ids)
    select v_ids[s.n], v_flow, v_partition, s.namespace, s.lane_id, s.caps_key, s.priority, v_now, s.retention_ms,
           s.delay_until_ms, s.deadline_at_ms, s.attempt_timeout_ms, s.tags <> '{}', v_now, v_now, 'runnable', 'unowned',
           case when c.t is not null then 'blocked_by_dependencies'
                when s.delay_until_ms is not null then 'not_eligible_until_time' else 'eligible_now' end,
           case when c.t is not null then 'waiting_for_children'
                when s.delay_until_ms is not null then 'waiting_for_delay' else 'waiting_for_worker' end,
           'none', 'pending_first_attempt', v_limited[s.n], s.quota_policy_id, s.budget_ids
      from unnest(v_subs) with ordinality s(
           lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities, caps_key,
           priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, n)
      left join (select distinct e.t from unnest(v_to) e(t)) c on c.t = s.n;
    update ff_flow_core f
       set node_count = v_count, live_members = v_count, edge_count = cardinality(v_from),
           graph_revision = v_count + cardinality(v_from)
     where f.flow_id = v_flow;
    perform ff__wake_members(v_flow);
    return query
        select v_flow, x.key, ff__wire_id(v_partition, x.id)
          from unnest(v_keys, v_ids) with ordinality x(key, id, n) order by x.n;
end
$$;

comment on function ff_submit_flow(jsonb, jsonb, jsonb, uuid, text, text, jsonb) is
$$Submits a whole flow, all or nothing. p_nodes: objects with key (any name, unique in the call), lane_id and what else
ff_create_execution takes, without p_; payload as text, or payload_base64. p_edges: {from, to, dependency_kind,
data_passing_ref} by node key. p_groups: {to, policy, k, on_satisfied} as ff_set_edge_group_policy. One row per node.

Errors: invalid_input, payload_too_large, invalid_tag_key, flow_conflict, invalid_lane_id, invalid_policy, invalid_capabilities, quota_policy_not_found, budget_not_found, invalid_execution_id, partition_mismatch, self_referencing_edge, invalid_dependency_kind, dependency_already_exists, cycle_detected, idempotency_conflict, execution_id_conflict, lane_not_accepting, quorum_unreachable$$;
