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
          left join ff_exec_core c on c.execution_id = x.id
         where c.flow_id is distinct from p_flow_id order by x.n limit 1
    loop
        perform ff__not_in_flow(p_flow_id, v_end.wire_id, v_end.flow_id, v_end.which);
    end loop;
    select x.* into d from ff_edge x
     where x.upstream_eid = v_up and x.downstream_eid = v_down;
    if found then
        perform ff__already_linked(d, f.partition_key);
    end if;
    e := ff__open(v_down);
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
