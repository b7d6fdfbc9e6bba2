-- Locks: the flow, the downstream (waits for them). Repeatable by edge id.
create or replace function ff_stage_dependency_edge(
    p_flow_id uuid,
    p_upstream_execution_id text,
    p_downstream_execution_id text,
    p_edge_id uuid default null,
    p_dependency_kind text default 'success_only',
    p_data_passing_ref text default null,
    p_expected_graph_revision bigint default null,
    out outcome text,
    out edge_id uuid,
    out graph_revision bigint
)
language plpgsql volatile security definer
as $$
declare
    s record;
begin
    s := ff__stage_edge(p_flow_id, p_upstream_execution_id, p_downstream_execution_id, p_edge_id, p_dependency_kind,
                        p_data_passing_ref, p_expected_graph_revision);
    outcome := s.outcome;
    edge_id := s.edge_id;
    graph_revision := s.graph_revision;
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_stage_dependency_edge(uuid, text, text, uuid, text, text, bigint) is
$$Adds an edge to a flow: the downstream waits for the upstream. The edge has no effect until it is applied
(ff_apply_dependency_to_child, ff_start_flow). p_dependency_kind: success_only, or any_terminal to accept any outcome.
p_edge_id: makes the call repeatable. p_expected_graph_revision: reject the call if the graph has changed since.

Outcomes: outcome = staged | already_staged
Errors: invalid_input, invalid_execution_id, self_referencing_edge, invalid_dependency_kind, flow_not_found
Errors: dependency_already_exists, flow_already_terminal, stale_graph_revision, execution_not_in_flow
Errors: execution_already_terminal, edge_group_already_decided, cycle_detected$$;
-- grant: ff_producer, ff_operator, ff_admin
