-- Locks: the flow, the downstream (waits for them). Repeatable by edge id.
create or replace function ff_add_dependency(
    p_flow_id uuid,
    p_upstream_execution_id text,
    p_downstream_execution_id text,
    p_edge_id uuid default null,
    p_dependency_kind text default 'success_only',
    p_data_passing_ref text default null,
    p_expected_graph_revision bigint default null,
    out outcome text,
    out edge_id uuid,
    out graph_revision bigint,
    out unsatisfied_count int,
    out group_state text,
    out child_public_state text
)
language plpgsql volatile security definer
as $$
declare
    s record;
    a record;
begin
    s := ff__stage_edge(p_flow_id, p_upstream_execution_id, p_downstream_execution_id, p_edge_id, p_dependency_kind,
                        p_data_passing_ref, p_expected_graph_revision);
    a := ff__apply_edge(ff__lock_flow(p_flow_id), s.edge_id);
    outcome := a.outcome;
    edge_id := s.edge_id;
    graph_revision := s.graph_revision;
    unsatisfied_count := a.unsatisfied_count;
    group_state := a.group_state;
    child_public_state := a.child_public_state;
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_add_dependency(uuid, text, text, uuid, text, text, bigint) is
$$ff_stage_dependency_edge and ff_apply_dependency_to_child in one call.

Outcomes: outcome = applied | already_applied
Outcomes: group_state = pending | satisfied | impossible | cancelled
Errors: invalid_input, invalid_execution_id, self_referencing_edge, invalid_dependency_kind, flow_not_found
Errors: dependency_already_exists, flow_already_terminal, stale_graph_revision, execution_not_in_flow
Errors: execution_already_terminal, edge_group_already_decided, cycle_detected, edge_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
