create or replace function ff_list_edges(
    p_flow_id uuid, p_execution_id text default null, p_direction text default null, p_after uuid default null,
    p_limit int default 100
) returns table (
    flow_id uuid, edge_id uuid, upstream_execution_id text, downstream_execution_id text, dependency_kind text,
    data_passing_ref text, edge_state text, upstream_outcome text, created_at_ms bigint, applied_at_ms bigint,
    resolved_at_ms bigint, reopened_at_ms bigint
)
language plpgsql stable security definer
as $$
declare
    v_id uuid;
begin
    perform ff__check_limit(p_limit);
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif p_direction not in ('incoming', 'outgoing') then
        perform ff__invalid('p_direction', 'must be incoming or outgoing',
                            jsonb_build_object('value', left(p_direction, 64)));
    elsif p_execution_id is not null then
        v_id := ff__execution_uuid(p_execution_id);
        if v_id is null then
            return;
        end if;
    end if;
    return query
        select d.flow_id, d.edge_id, ff__wire_id(ff__partition(d.upstream_eid), d.upstream_eid),
               ff__wire_id(ff__partition(d.downstream_eid), d.downstream_eid), d.dependency_kind, d.data_passing_ref,
               d.edge_state, d.upstream_outcome, d.created_at_ms, d.applied_at_ms, d.resolved_at_ms, d.reopened_at_ms
          from ff_edge d
         where d.flow_id = p_flow_id and (p_after is null or d.edge_id > p_after)
           and (v_id is null
                or d.upstream_eid = v_id and p_direction is distinct from 'incoming'
                or d.downstream_eid = v_id and p_direction is distinct from 'outgoing')
         order by d.edge_id limit p_limit;
end
$$;

comment on function ff_list_edges(uuid, text, text, uuid, int) is
$$Edges of a flow in id order; with p_execution_id only those of one member, with p_direction only its incoming or
outgoing edges. p_after: the last edge_id read.

Outcomes: dependency_kind = success_only | any_terminal
Outcomes: edge_state = staged | applied | satisfied | failed | skipped
Outcomes: upstream_outcome = success | failed | cancelled | expired | skipped
Nullable: data_passing_ref, upstream_outcome, applied_at_ms, resolved_at_ms, reopened_at_ms
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
