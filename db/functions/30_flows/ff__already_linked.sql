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
