-- Locks: the flow's id, idempotency keys and unknown lanes in their order (waits for them). All or nothing, set-based:
-- run time is proportional to the number of nodes and edges. Not repeatable: a flow id is used once.
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
    c_node constant jsonb := jsonb '{"key": "string", "lane_id": "string", "execution_kind": "string",
        "payload": "string", "payload_base64": "string", "idempotency_key": "string", "priority": "number",
        "policy": "object", "tags": "object", "required_capabilities": "array",
        "delay_until_ms": "number", "delay_ms": "number", "deadline_at_ms": "number",
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
    v_hashes bytea[];
    v_payloads bytea[];
    v_subs ff_submission[];
    v_turns bigint[];
    v_waiting boolean[];
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
        perform ff__raise_flow_conflict(v_flow);
    end if;

    -- Ids are sorted, so executions of equal priority are claimed in node order.
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
        -- Raise the same error with the node key added.
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

    -- Keys, ids, lanes: other transactions may hold them; each kind is processed in its order.
    v_hashes := array(
        select ff__request_hash(s.lane_id, s.execution_kind, v_payloads[s.n], s.payload_encoding, v_flow)
          from unnest(v_subs) with ordinality s(
               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
               caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, limited, state, queue_id, n)
         order by s.n);
    for r in
        select s.namespace, x.node ->> 'idempotency_key' as key, s.dedup_window_ms as window_ms, s.n
          from unnest(v_nodes) with ordinality x(node, n)
          join unnest(v_subs) with ordinality s(
               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
               caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms,
               dedup_window_ms, quota_policy_id, budget_ids, limited, state, queue_id, n) on s.n = x.n
         where x.node ->> 'idempotency_key' <> '' and s.dedup_window_ms > 0
         order by s.namespace collate "C", (x.node ->> 'idempotency_key') collate "C", s.n
    loop
        if ff__claim_idempotency_key(r.namespace, r.key, r.window_ms, v_ids[r.n], v_hashes[r.n]) is not null then
            perform ff__raise('idempotency_conflict', 'the idempotency key belongs to another execution',
                              jsonb_build_object('node', v_keys[r.n], 'namespace', r.namespace));
        end if;
    end loop;
    for r in select i.execution_id from unnest(v_ids) x(id) join ff_execution i on i.execution_id = x.id limit 1 loop
        perform ff__raise('execution_id_conflict', 'an execution with this id exists',
                          jsonb_build_object('execution_id', ff__wire_id(v_partition, r.execution_id)));
    end loop;
    for r in
        select x.n
          from unnest(v_nodes) with ordinality x(node, n)
         where x.node ->> 'execution_id' is not null
           and ff__is_id_in_use(v_ids[x.n], (v_subs[x.n]).namespace, x.node ->> 'idempotency_key')
         limit 1
    loop
        perform ff__raise('execution_id_conflict',
                          'the id is that of a deleted execution of which events, children or a key are still kept',
                          jsonb_build_object('execution_id', ff__wire_id(v_partition, v_ids[r.n]),
                                             'node', v_keys[r.n]));
    end loop;
    for r in select distinct x.lane_id from unnest(v_subs) x order by x.lane_id loop
        perform ff__open_lane(r.lane_id, v_now);
    end loop;
    for i in 1..v_count loop
        -- Admission slots may already be reserved for an id that the caller chose; the end of the execution releases
        -- them.
        if not v_subs[i].limited and v_nodes[i] ->> 'execution_id' is not null then
            v_subs[i].limited := exists (select from ff_quota_reservation q where q.execution_id = v_ids[i]);
        end if;
    end loop;
    perform pg_current_xact_id();
    v_turns := array(select nextval('ff_turn_seq') from generate_series(1, v_count)); -- first come, first served
    v_waiting := array(select e.t is not null
                         from generate_series(1, v_count) g(n)
                         left join (select distinct y.t from unnest(v_to) y(t)) e on e.t = g.n order by g.n);
    begin
        for r in
            select y.sub, array_agg(i.id order by i.n) as ids, array_agg(i.payload order by i.n) as payloads,
                   array_agg(i.waiting order by i.n) as waiting, array_agg(i.turn order by i.n) as turns
              from (select x.n, (x.lane_id, x.namespace, x.execution_kind, x.creator, x.payload_encoding, x.policy,
                                 x.tags, x.required_capabilities, x.caps_key, x.priority, x.delay_until_ms,
                                 x.deadline_at_ms, x.attempt_timeout_ms, x.retention_ms, x.dedup_window_ms,
                                 x.quota_policy_id, x.budget_ids, x.limited, x.state, q.queue_id)::ff_submission as sub
                      from unnest(v_subs) with ordinality x(
                               lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags,
                               required_capabilities, caps_key, priority, delay_until_ms, deadline_at_ms,
                               attempt_timeout_ms, retention_ms, dedup_window_ms, quota_policy_id, budget_ids, limited,
                               state, queue_id, n)
                      join (select z.lane_id, z.namespace, z.limited, z.caps_key,
                                   ff__queue(z.lane_id, z.namespace, z.limited, z.caps_key, z.required_capabilities)
                                       as queue_id
                              from (select distinct on (1, 2, 3, 4) u.lane_id, u.namespace, u.limited, u.caps_key,
                                           u.required_capabilities
                                      from unnest(v_subs) u order by 1, 2, 3, 4) z) q
                        on q.lane_id = x.lane_id and q.namespace = x.namespace and q.limited = x.limited
                           and q.caps_key = x.caps_key) y
              join unnest(v_ids, v_payloads, v_waiting, v_turns) with ordinality i(id, payload, waiting, turn, n)
                on i.n = y.n
             group by y.sub
        loop
            perform ff__insert_executions(r.ids, r.payloads, r.sub, v_now, null, v_flow, false, r.waiting, r.turns);
        end loop;
    exception when unique_violation then
        perform ff__raise('execution_id_conflict', 'an execution with one of these ids has just been made', '{}');
    end;
    insert into ff_edge (
        flow_id, edge_id, upstream_eid, downstream_eid, dependency_kind, data_passing_ref, edge_state, created_at_ms,
        applied_at_ms)
    select v_flow, ff__mint_id(v_now, v_partition), v_ids[f.f], v_ids[f.t],
           coalesce(x.edge ->> 'dependency_kind', 'success_only'), x.edge ->> 'data_passing_ref', 'applied', v_now,
           v_now
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
    update ff_flow_core f
       set node_count = v_count, live_members = v_count, edge_count = cardinality(v_from),
           graph_revision = v_count + cardinality(v_from)
     where f.flow_id = v_flow;
    perform ff__notify_member_lanes(v_flow);
    return query
        select v_flow, x.key, ff__wire_id(v_partition, x.id)
          from unnest(v_keys, v_ids) with ordinality x(key, id, n) order by x.n;
end
$$;

comment on function ff_submit_flow(jsonb, jsonb, jsonb, uuid, text, text, jsonb) is
$$Submits a whole flow, all or nothing. p_nodes: objects with key (any name, unique in the call), lane_id and other
parameters of ff_create_execution without p_; payload as text, or payload_base64. p_edges: {from, to, dependency_kind,
data_passing_ref} by node key. p_groups: {to, policy, k, on_satisfied} as for ff_set_edge_group_policy. One row per
node.

Errors: invalid_input, payload_too_large, invalid_tag_key, flow_conflict, invalid_lane_id, invalid_policy
Errors: invalid_capabilities, quota_policy_not_found, budget_not_found, invalid_execution_id, partition_mismatch
Errors: self_referencing_edge, invalid_dependency_kind, dependency_already_exists, cycle_detected
Errors: idempotency_conflict, execution_id_conflict, lane_not_accepting, quorum_unreachable$$;
-- grant: ff_producer, ff_operator, ff_admin

-- Checks a list of json objects: allowed keys and the json type of each (null means absent).
-- Errors: invalid_input (DETAIL arg, index from 0, key).
create or replace function ff__check_items(p_arg text, p_items jsonb, p_max int, p_types jsonb, p_required text[])
returns void
language plpgsql stable
as $$
declare
    r record;
begin
    if p_items is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif jsonb_typeof(p_items) <> 'array' then
        perform ff__invalid(p_arg, 'must be a json array');
    elsif jsonb_array_length(p_items) > p_max then
        perform ff__invalid(p_arg, format('must have at most %s items', p_max));
    end if;
    for r in
        select x.n, null::text as key, 'must hold json objects' as reason
          from jsonb_array_elements(p_items) with ordinality x(item, n) where jsonb_typeof(x.item) <> 'object'
         order by x.n limit 1
    loop
        perform ff__invalid(p_arg, r.reason, jsonb_build_object('index', r.n - 1));
    end loop;
    for r in
        select x.n, k.key,
               case when p_types -> k.key is null then 'has an unknown key'
                    else format('needs a %s there', p_types ->> k.key) end as reason
          from jsonb_array_elements(p_items) with ordinality x(item, n)
         cross join lateral jsonb_each(x.item) k
         where p_types ->> k.key is null or jsonb_typeof(k.value) not in (p_types ->> k.key, 'null')
         order by x.n, k.key limit 1
    loop
        perform ff__invalid(p_arg, r.reason, jsonb_build_object('index', r.n - 1, 'key', left(r.key, 64)));
    end loop;
    for r in
        select x.n, q.key
          from jsonb_array_elements(p_items) with ordinality x(item, n) cross join unnest(p_required) q(key)
         where x.item ->> q.key is null
         order by x.n, q.key limit 1
    loop
        perform ff__invalid(p_arg, 'lacks a key', jsonb_build_object('index', r.n - 1, 'key', r.key));
    end loop;
end
$$;

-- Checks one node of ff_submit_flow as ff_create_execution does, in the same order, except lane state and keys.
-- Errors: as ff__check_submission, and invalid_lane_id.
create or replace function ff__check_node(p_node jsonb, p_namespace text, p_now_ms bigint) returns ff_submission
language plpgsql stable
as $$
begin
    perform ff__check_lane_id(p_node ->> 'lane_id');
    if p_node ? 'required_capabilities'
       and jsonb_path_exists(p_node, '$.required_capabilities[*] ? (@.type() != "string")') then
        perform ff__raise('invalid_capabilities', 'the capabilities are not a list of strings',
                          jsonb_build_object('reason', 'not_a_string'));
    elsif octet_length(p_node ->> 'idempotency_key') > 512 then
        perform ff__invalid('idempotency_key', 'must have at most 512 bytes');
    elsif p_node ->> 'payload_base64' is not null then
        if p_node ->> 'payload' is not null then
            perform ff__invalid('payload_base64', 'and payload cannot both be given');
        elsif p_node ->> 'payload_base64' !~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' then
            perform ff__invalid('payload_base64', 'is not base64');
        end if;
    end if;
    return ff__check_submission(
        p_node ->> 'lane_id', coalesce(p_node ->> 'execution_kind', ''),
        ff__json_int('p_nodes', p_node, 'priority', -2147483648, 2147483647)::int,
        coalesce(nullif(p_node -> 'policy', 'null'), '{}'), coalesce(nullif(p_node -> 'tags', 'null'), '{}'),
        case when jsonb_typeof(p_node -> 'required_capabilities') = 'array'
             then array(select t.value from jsonb_array_elements_text(p_node -> 'required_capabilities') t)
             else '{}' end,
        ff__json_int('p_nodes', p_node, 'delay_until_ms', -9223372036854775808, 9223372036854775807),
        ff__json_int('p_nodes', p_node, 'delay_ms', -9223372036854775808, 9223372036854775807),
        ff__json_int('p_nodes', p_node, 'deadline_at_ms', -9223372036854775808, 9223372036854775807),
        coalesce(p_node ->> 'namespace', p_namespace), p_node ->> 'payload_encoding',
        coalesce(p_node ->> 'creator', ''), p_now_ms);
end
$$;

-- The execution id given in a node of ff_submit_flow. Errors: invalid_execution_id, partition_mismatch.
create or replace function ff__node_id(p_flow_id uuid, p_execution_id text) returns uuid
language plpgsql stable
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if v_id is null then
        perform ff__raise('invalid_execution_id', 'the partition is not the last byte of the uuid',
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    perform ff__check_partition(p_flow_id, v_id);
    return v_id;
end
$$;

-- Returns a cycle in a graph of nodes 1 .. p_nodes with edges p_from[i] -> p_to[i] as a list of nodes, or NULL if there
-- is none. Repeatedly removes nodes without incoming edges (topological sort), in time linear in nodes and edges. The
-- remaining nodes contain a cycle, found by walking backwards.
create or replace function ff__find_cycle(p_nodes int, p_from int[], p_to int[]) returns int[]
language plpgsql stable
as $$
declare
    v_to int[];
    v_first int[];
    v_open int[];
    v_queue int[] := array_fill(0, array[p_nodes]);
    v_before int[];
    v_tail int := 0;
    v_head int := 0;
    v_node int;
    v_next int;
    v_path int[] := '{}'::int[];
begin
    -- Edges sorted by origin: those of node n are v_to[v_first[n]] .. v_to[v_first[n + 1] - 1].
    select array_agg(e.t order by e.f) into v_to from unnest(p_from, p_to) e(f, t);
    select array_agg(x.first order by x.n) into v_first
      from (select g.n, (1 + coalesce(sum(count(e.f)) over (order by g.n rows between unbounded preceding
                                                             and 1 preceding), 0))::int as first
              from generate_series(1, p_nodes + 1) g(n) left join unnest(p_from) e(f) on e.f = g.n group by g.n) x;
    select array_agg(x.open order by x.n) into v_open
      from (select g.n, count(e.t)::int as open
              from generate_series(1, p_nodes) g(n) left join unnest(p_to) e(t) on e.t = g.n group by g.n) x;
    for v_node in 1..p_nodes loop
        if v_open[v_node] = 0 then
            v_tail := v_tail + 1;
            v_queue[v_tail] := v_node;
        end if;
    end loop;
    while v_head < v_tail loop
        v_head := v_head + 1;
        v_node := v_queue[v_head];
        for i in v_first[v_node]..v_first[v_node + 1] - 1 loop
            v_next := v_to[i];
            v_open[v_next] := v_open[v_next] - 1;
            if v_open[v_next] = 0 then
                v_tail := v_tail + 1;
                v_queue[v_tail] := v_next;
            end if;
        end loop;
    end loop;
    if v_tail = p_nodes then
        return null;
    end if;

    select array_agg(x.before order by x.n) into v_before
      from (select g.n, min(e.f) filter (where v_open[e.f] > 0) as before
              from generate_series(1, p_nodes) g(n) left join unnest(p_from, p_to) e(f, t) on e.t = g.n
             group by g.n) x;
    v_node := (select min(x.n) from unnest(v_open) with ordinality x(open, n) where x.open > 0);
    for i in 1..p_nodes loop
        v_node := v_before[v_node];
    end loop;
    -- After p_nodes steps back, v_node is on a cycle: follow it once around.
    v_next := v_node;
    loop
        v_path := v_node || v_path;
        v_node := v_before[v_node];
        exit when v_node = v_next;
    end loop;
    return v_path;
end
$$;

-- Returns an integer of a node or group; NULL if absent. Errors: invalid_input.
create or replace function ff__json_int(p_arg text, p_item jsonb, p_key text, p_min bigint, p_max bigint) returns bigint
language plpgsql stable
as $$
declare
    v numeric := (p_item ->> p_key)::numeric;
begin
    if v <> trunc(v) or v not between p_min and p_max then
        perform ff__invalid(p_arg, 'has a number out of range', jsonb_build_object('key', p_key));
    end if;
    return v::bigint;
end
$$;
