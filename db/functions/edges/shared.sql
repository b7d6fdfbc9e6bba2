-- ff_stage_dependency_edge without opening and closing the flow: the caller holds the flow after this, whatever the
-- result. Returns the edge as stored; outcome says whether it is new.
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
            perform ff__raise_already_linked(d, f.partition_key);
        end if;
        outcome := 'already_staged';
        edge_id := d.edge_id;
        graph_revision := f.graph_revision;
        return;
    elsif f.public_flow_state in ('completed', 'failed', 'cancelled') then
        perform ff__raise_flow_over(f);
    elsif p_revision <> f.graph_revision then
        perform ff__raise('stale_graph_revision', format('the graph is at revision %s', f.graph_revision),
                          jsonb_build_object('flow_id', p_flow_id, 'current', f.graph_revision,
                                             'expected', p_revision));
    end if;
    for v_end in
        select x.which, x.wire_id, c.flow_id
          from (values (1, 'upstream', p_upstream, v_up),
                       (2, 'downstream', p_downstream, v_down)) x(n, which, wire_id, id)
          left join ff_execution c on c.execution_id = x.id
         where c.flow_id is distinct from p_flow_id order by x.n limit 1
    loop
        perform ff__raise_not_in_flow(p_flow_id, v_end.wire_id, v_end.flow_id, v_end.which);
    end loop;
    select x.* into d from ff_edge x
     where x.upstream_eid = v_up and x.downstream_eid = v_down;
    if found then
        perform ff__raise_already_linked(d, f.partition_key);
    end if;
    e := ff__open(v_down, true);
    if e.lifecycle_phase = 'terminal' then
        perform ff__raise_already_terminal(e);
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

-- Raises dependency_already_exists with the whole existing edge.
create or replace function ff__raise_already_linked(d ff_edge, p_partition smallint) returns void
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

-- Returns the path from one member of a flow to another over its edges in any state; NULL if there is none. Exact at
-- any size: each member is visited once. The path is traced backwards through the reachable members, which contain no
-- cycle.
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

-- ff_apply_dependency_to_child; the caller holds the flow.
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
        perform ff__raise_flow_over(f);
    end if;
    e := ff__open(d.downstream_eid, true);
    if e.lifecycle_phase = 'terminal' then
        perform ff__raise_already_terminal(e);
    end if;

    outcome := 'applied';
    -- Also writes the row of the flow: a concurrent end with an older snapshot, which cannot see this edge applied,
    -- then gets a serialization failure instead of missing the edge.
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
               -- An impossible group and a satisfied any_of or quorum group stay as they are; a satisfied all_of group
               -- waits for one more edge.
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
    child_public_state := ff__resettle_child(e);
    if g.group_state <> 'pending' then
        perform ff__cancel_siblings(f.flow_id, array[d.downstream_eid]);
    end if;
end
$$;

-- Raises execution_not_in_flow with the actual flow of the execution.
create or replace function ff__raise_not_in_flow(p_flow_id uuid, p_execution_id text, p_real uuid, p_which text)
returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_in_flow',
                      format('execution %s is not a member of flow %s', p_execution_id, p_flow_id),
                      jsonb_build_object('execution_id', p_execution_id, 'which', p_which, 'flow_id', p_real));
end
$$;

-- ff_wait_children and ff_wait_children_execution. Locks: the flow, the execution (waits for them). The flow stays
-- locked from the check of the group to the pause, so no child can end in between.
create or replace function ff__wait_children(
    p_fence ff_fence, p_override boolean default false,
    out outcome text, out pending_children int, out replayed boolean
)
language plpgsql volatile
as $$
declare
    v_flow uuid := (select c.flow_id from ff_execution c where c.execution_id = p_fence.execution_id);
    v_op text := case when p_override then 'override' else 'wait_children' end;
    v_detail jsonb;
    e ff_exec;
    g ff_edge_group;
begin
    if v_flow is not null then
        perform ff__open_flow(v_flow);
    end if;
    if p_override then
        e := ff__open_override(p_fence.wire_id, p_fence.attempt_index, 'wait_children');
    else
        e := ff__fence(p_fence, 'wait_children');
    end if;
    e.defer_ends := true;
    replayed := e.execution_id is null;
    if replayed then
        v_detail := (ff__recorded_release(p_fence, 'wait_children')).release_detail;
        outcome := v_detail ->> 'outcome';
        pending_children := (v_detail -> 'pending_children')::int;
    elsif e.flow_id is null then
        outcome := 'ready';
        pending_children := 0;
    else
        if e.flow_id is distinct from v_flow then
            perform ff__open_flow(e.flow_id);
            v_flow := e.flow_id;
        end if;
        perform ff__check_flow_open(e);
        select x.* into g from ff_edge_group x where x.flow_id = e.flow_id and x.downstream_eid = e.execution_id;
        pending_children := coalesce(g.n_edges - g.n_success - g.n_failed - g.n_skipped, 0);
        outcome := case when coalesce(g.n_edges, 0) = 0 then 'ready' when g.group_state = 'pending' then 'waiting'
                        when g.group_state = 'impossible' then 'skipped' else 'ready' end;
        v_detail := jsonb_build_object('outcome', outcome, 'pending_children', pending_children);
        if outcome = 'waiting' then
            perform ff__settle(e, ff__end_lease(e, v_op, v_op, null, v_detail), 'attempt_interrupted');
        elsif outcome = 'skipped' then
            perform ff__terminate(
                e, ff__end_attempt(e, v_op, 'skipped', v_op, null, 'dependency_impossible', 'skipped', 'cancelled',
                                   v_detail),
                'skipped', 'dependency_impossible');
        end if;
    end if;
    if p_override and outcome = 'ready' then
        -- No other write stores the ord of the operator event.
        update ff_execution c set last_event_ord = e.ord where c.execution_id = e.execution_id;
    end if;
    if v_flow is not null then
        perform ff__close_flow(v_flow);
    end if;
end
$$;
