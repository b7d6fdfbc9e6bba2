create or replace function ff_describe_edge(p_flow_id uuid, p_edge_id uuid)
returns table (
    flow_id uuid, edge_id uuid, upstream_execution_id text, downstream_execution_id text, dependency_kind text,
    data_passing_ref text, edge_state text, upstream_outcome text, created_at_ms bigint, applied_at_ms bigint,
    resolved_at_ms bigint, reopened_at_ms bigint
)
language plpgsql stable security definer rows 1
as $$
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif p_edge_id is null then
        perform ff__invalid('p_edge_id', 'must not be null');
    end if;
    return query
        select d.flow_id, d.edge_id, ff__wire_id(ff__partition(d.upstream_eid), d.upstream_eid),
               ff__wire_id(ff__partition(d.downstream_eid), d.downstream_eid), d.dependency_kind, d.data_passing_ref,
               d.edge_state, d.upstream_outcome, d.created_at_ms, d.applied_at_ms, d.resolved_at_ms, d.reopened_at_ms
          from ff_edge d where d.flow_id = p_flow_id and d.edge_id = p_edge_id;
end
$$;

comment on function ff_describe_edge(uuid, uuid) is
$$One edge of a flow. No row: no such edge.

Rows: at most one
Outcomes: dependency_kind = success_only | any_terminal
Outcomes: edge_state = staged | applied | satisfied | failed | skipped
Outcomes: upstream_outcome = success | failed | cancelled | expired | skipped
Nullable: data_passing_ref, upstream_outcome, applied_at_ms, resolved_at_ms, reopened_at_ms
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
