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
    e := ff__open(d.downstream_eid);
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
