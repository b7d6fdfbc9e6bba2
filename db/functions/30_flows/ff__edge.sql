-- ff_stage_dependency_edge without opening and closing the flow: the caller holds it after this, whatever comes back.
-- Returns the edge as it is stored; outcome says whether it is new.
create or replace function ff__stage_edge(
    p_flow_id uuid, p_upstream text, p_downstream text, p_edge_id uuid, p_kind text, p_data text, p_revision bigint,
    out outcome text, out edge_id uuid, out graph_revision bigint
)
language plpgsql volatile
as $$
declare
    v_up uuid := ff__execution_uuid(p_upstream);
    v_down uuid := ff__execution_uuid(p_downstream);
    v_path uuid[];
    v_end record;
    d ff_edge;
    g ff_edge_group;
    e ff_exec;
    f ff_flow_core;
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif octet_length(p_data) > 4096 then
        perform ff__invalid('p_data_passing_ref', 'must have at most 4096 bytes');
    elsif right(p_upstream, 36)::uuid = right(p_downstream, 36)::uuid then
        perform ff__raise('self_referencing_edge', 'an execution cannot wait for itself',
                          jsonb_build_object('execution_id', p_upstream, 'flow_id', p_flow_id));
    elsif p_kind is null or p_kind not in ('success_only', 'any_terminal') then
        perform ff__raise('invalid_dependency_kind', 'the kind must be success_only or any_terminal',
                          jsonb_build_object('dependency_kind', left(p_kind, 64)));
    end if;
    f := ff__lock_flow(p_flow_id);

    select x.* into d from ff_edge x where x.flow_id = p_flow_id and x.edge_id = p_edge_id;
    if found then
        if (d.upstream_eid, d.downstream_eid, d.dependency_kind, d.data_passing_ref)
           is distinct from (v_up, v_down, p_kind::text, p_data) then
            perform ff__already_linked(d, f.partition_key);
        end if;
        outcome := 'already_staged';
        edge_id := d.edge_id;
        graph_revision := f.graph_revision;
        return;
    elsif f.public_flow_state in ('completed', 'failed', 'cancelled') then
        perform ff__flow_over(f);
    elsif p_revision <> f.graph_revision then
        perform ff__raise('stale_graph_revision', format('the graph is at revision %s', f.graph_revision),
                          jsonb_build_object('flow_id', p_flow_id, 'current', f.graph_revision, 'expected', p_revision));
    end if;
    for v_end in
        select x.which, x.wire_id, c.flow_id from (values (1, 'upstream', p_upstream, v_up),
                                                          (2, 'downstream', p_downstream, v_down)) x(n, which, wire_id, id)
          left join ff_execution c on c.execution_id = x.id
         where c.flow_id is distinct from p_flow_id order by x.n limit 1
    loop
        perform ff__not_in_flow(p_flow_id, v_end.wire_id, v_end.flow_id, v_end.which);
    end loop;
    select x.* into d from ff_edge x
     where x.upstream_eid = v_up and x.downstream_eid = v_down;
    if found then
        perform ff__already_linked(d, f.partition_key);
    end if;
    e := ff__open(v_down, true);
    if e.lifecycle_phase = 'terminal' then
        perform ff__already_terminal(e);
    end if;
    select x.* into g from ff_edge_group x where x.flow_id = p_flow_id and x.downstream_eid = v_down;
    if g.group_state = 'impossible' or g.group_state = 'satisfied' and g.policy_kind <> 'all_of' then
        perform ff__raise('edge_group_already_decided', format('what the execution waits for is %s', g.group_state),
                          jsonb_build_object('execution_id', p_downstream, 'flow_id', p_flow_id,
                                             'group_state', g.group_state));
    end if;
    v_path := ff__cycle_path(v_down, v_up);
    if v_path is not null then
        perform ff__raise('cycle_detected', 'the upstream waits for the downstream already',
                          jsonb_build_object(
                              'flow_id', p_flow_id, 'upstream_execution_id', p_upstream,
                              'downstream_execution_id', p_downstream, 'length', cardinality(v_path),
                              'path', (select jsonb_agg(ff__wire_id(f.partition_key, x.id) order by x.n)
                                         from unnest(v_path) with ordinality x(id, n) where x.n <= 100)));
    end if;

    outcome := 'staged';
    edge_id := coalesce(p_edge_id, ff__mint_id(e.now_ms, f.partition_key));
    insert into ff_edge (
        flow_id, edge_id, upstream_eid, downstream_eid, dependency_kind, data_passing_ref, edge_state, created_at_ms)
    values (p_flow_id, edge_id, v_up, v_down, p_kind, p_data, 'staged', e.now_ms);
    update ff_flow_core x
       set edge_count = x.edge_count + 1, graph_revision = x.graph_revision + 1, last_mutation_at_ms = e.now_ms
     where x.flow_id = p_flow_id
    returning x.graph_revision into ff__stage_edge.graph_revision;
end
$$;

-- ff_apply_dependency_to_child in a flow that the caller holds.
create or replace function ff__apply_edge(
    f ff_flow_core, p_edge_id uuid,
    out outcome text, out unsatisfied_count int, out group_state text, out child_public_state text
)
language plpgsql volatile
as $$
declare
    v_result text;
    v_outcome text;
    d ff_edge;
    g ff_edge_group;
    e ff_exec;
begin
    select x.* into d from ff_edge x where x.flow_id = f.flow_id and x.edge_id = p_edge_id;
    if not found then
        perform ff__raise('edge_not_found', 'no such edge in this flow',
                          jsonb_build_object('flow_id', f.flow_id, 'edge_id', p_edge_id));
    elsif d.edge_state <> 'staged' then
        outcome := 'already_applied';
        select x.n_edges - x.n_success, x.group_state, c.public_state
          into unsatisfied_count, ff__apply_edge.group_state, child_public_state
          from ff_exec_core c
          left join ff_edge_group x on x.flow_id = f.flow_id and x.downstream_eid = c.execution_id
         where c.execution_id = d.downstream_eid;
        return;
    elsif f.public_flow_state in ('completed', 'failed', 'cancelled') then
        perform ff__flow_over(f);
    end if;
    e := ff__open(d.downstream_eid, true);
    if e.lifecycle_phase = 'terminal' then
        perform ff__already_terminal(e);
    end if;

    outcome := 'applied';
    -- The flow's row is written too: an end under way with an older snapshot, which cannot see this edge applied, then
    -- fails to serialize instead of passing it by.
    update ff_flow_core x set last_mutation_at_ms = e.now_ms where x.flow_id = f.flow_id;
    select nullif(u.terminal_outcome, 'none') into v_outcome from ff_exec_core u where u.execution_id = d.upstream_eid;
    v_result := case when v_outcome is null then 'applied' else ff__edge_result(d.dependency_kind, v_outcome) end;
    update ff_edge x
       set edge_state = v_result, applied_at_ms = e.now_ms, upstream_outcome = v_outcome,
           resolved_at_ms = case when v_outcome is not null then e.now_ms end
     where x.flow_id = f.flow_id and x.edge_id = p_edge_id;
    insert into ff_edge_group (flow_id, downstream_eid, policy_kind, group_state)
    values (f.flow_id, d.downstream_eid, 'all_of', 'pending')
    on conflict do nothing;
    update ff_edge_group x
       set n_edges = x.n_edges + 1, n_success = x.n_success + (v_result = 'satisfied')::int,
           n_failed = x.n_failed + (v_result = 'failed')::int, n_skipped = x.n_skipped + (v_result = 'skipped')::int,
           group_state = case
               -- A race that is decided stays so; what waits for all has one more to wait for.
               when x.group_state = 'impossible' or x.group_state = 'satisfied' and x.policy_kind <> 'all_of'
               then x.group_state
               else ff__group_state(x.policy_kind, x.k, x.n_edges + 1, x.n_success + (v_result = 'satisfied')::int,
                                    x.n_failed + (v_result = 'failed')::int,
                                    x.n_skipped + (v_result = 'skipped')::int) end
     where x.flow_id = f.flow_id and x.downstream_eid = d.downstream_eid
    returning x.* into g;
    update ff_edge_group x
       set decided_at_ms = case when g.group_state <> 'pending' then coalesce(x.decided_at_ms, e.now_ms) end
     where x.flow_id = f.flow_id and x.downstream_eid = d.downstream_eid;
    unsatisfied_count := g.n_edges - g.n_success;
    group_state := g.group_state;
    child_public_state := ff__settle_child(e);
    if g.group_state <> 'pending' then
        perform ff__cancel_siblings(f.flow_id, array[d.downstream_eid]);
    end if;
end
$$;

-- Raises dependency_already_exists with the whole edge that exists.
create or replace function ff__already_linked(d ff_edge, p_partition smallint) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('dependency_already_exists', format('edge %s exists', d.edge_id),
                      jsonb_build_object(
                          'flow_id', d.flow_id, 'edge_id', d.edge_id,
                          'upstream_execution_id', ff__wire_id(p_partition, d.upstream_eid),
                          'downstream_execution_id', ff__wire_id(p_partition, d.downstream_eid),
                          'dependency_kind', d.dependency_kind, 'data_passing_ref', left(d.data_passing_ref, 1024),
                          'edge_state', d.edge_state, 'upstream_outcome', d.upstream_outcome,
                          'created_at_ms', d.created_at_ms, 'applied_at_ms', d.applied_at_ms,
                          'resolved_at_ms', d.resolved_at_ms, 'reopened_at_ms', d.reopened_at_ms));
end
$$;

-- Raises execution_not_in_flow, with the flow it is really in.
create or replace function ff__not_in_flow(p_flow_id uuid, p_execution_id text, p_real uuid, p_which text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_in_flow', format('execution %s is not a member of flow %s', p_execution_id, p_flow_id),
                      jsonb_build_object('execution_id', p_execution_id, 'which', p_which, 'flow_id', p_real));
end
$$;

-- The way from one member of a flow to another over its edges, whatever their state; NULL if there is none. Exact at any
-- size: each member is visited once. The way is found backwards through what can be reached, which has no cycle.
create or replace function ff__cycle_path(p_from uuid, p_to uuid) returns uuid[]
language plpgsql volatile
as $$
declare
    v_reached uuid[];
    v_at uuid := p_to;
    v_path uuid[] := array[p_to];
begin
    if not exists (select from ff_edge d where d.upstream_eid = p_from)
       or not exists (select from ff_edge d where d.downstream_eid = p_to) then
        return null;
    end if;
    with recursive r(id) as (
        select p_from
        union
        select d.downstream_eid from r join ff_edge d on d.upstream_eid = r.id)
    select array_agg(r.id) into v_reached from r;
    if not p_to = any (v_reached) then
        return null;
    end if;
    while v_at <> p_from loop
        select d.upstream_eid into v_at from ff_edge d
         where d.downstream_eid = v_at and d.upstream_eid = any (v_reached)
         order by d.upstream_eid limit 1;
        v_path := v_at || v_path;
    end loop;
    return v_path;
end
$$;

-- A cycle in a graph of nodes 1 .. p_nodes with edges p_from[i] -> p_to[i], as a list of nodes, or NULL if there is none.
-- Takes nodes away that wait for nothing, until none is left (a topological sort): time linear in nodes and edges. What
-- remains contains a cycle, which is met by walking back through it.
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
    -- The edges by their origin: those of node n are v_to[v_first[n]] .. v_to[v_first[n + 1] - 1].
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
    -- After so many steps back it is on a cycle: once around.
    v_next := v_node;
    loop
        v_path := v_node || v_path;
        v_node := v_before[v_node];
        exit when v_node = v_next;
    end loop;
    return v_path;
end
$$;

-- The policy of an edge group. Errors: invalid_input.
create or replace function ff__check_group_policy(p_policy text, p_k int, p_on_satisfied text) returns void
language plpgsql stable
as $$
begin
    if p_policy is null or p_policy not in ('all_of', 'any_of', 'quorum') then
        perform ff__invalid('p_policy', 'must be all_of, any_of or quorum');
    elsif p_policy = 'quorum' and (p_k is null or p_k < 1) then
        perform ff__invalid('p_k', 'must be 1 or more for a quorum', jsonb_build_object('value', p_k));
    elsif p_policy <> 'quorum' and p_k is not null then
        perform ff__invalid('p_k', 'is for a quorum only', jsonb_build_object('value', p_k));
    elsif p_on_satisfied is null or p_on_satisfied not in ('cancel_remaining', 'let_run') then
        perform ff__invalid('p_on_satisfied', 'must be cancel_remaining or let_run');
    end if;
end
$$;
