-- Counts an edge group from its edges and judges it anew, whatever it was. The caller holds the flow and the child.
create or replace function ff__recount_group(p_flow_id uuid, p_downstream uuid, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    update ff_edge_group g
       set n_edges = n.edges, n_success = n.success, n_failed = n.failed, n_skipped = n.skipped,
           group_state = ff__group_state(g.policy_kind, g.k, n.edges, n.success, n.failed, n.skipped),
           decided_at_ms = case
               when ff__group_state(g.policy_kind, g.k, n.edges, n.success, n.failed, n.skipped) = 'pending' then null
               when g.group_state = ff__group_state(g.policy_kind, g.k, n.edges, n.success, n.failed, n.skipped)
               then g.decided_at_ms
               else p_now_ms end
      from (select count(*) filter (where d.edge_state <> 'staged')::int as edges,
                   count(*) filter (where d.edge_state = 'satisfied')::int as success,
                   count(*) filter (where d.edge_state = 'failed')::int as failed,
                   count(*) filter (where d.edge_state = 'skipped')::int as skipped
              from ff_edge d where d.downstream_eid = p_downstream) n
     where g.flow_id = p_flow_id and g.downstream_eid = p_downstream;
end
$$;
