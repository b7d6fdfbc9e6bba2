create or replace function ff_list_flows(
    p_state text default null, p_namespace text default null, p_partition int default null, p_after uuid default null,
    p_limit int default 100
) returns table (
    flow_id uuid, flow_kind text, namespace text, public_flow_state text, status text, node_count int,
    created_at_ms bigint, terminal_at_ms bigint
)
language plpgsql stable security definer
as $$
begin
    perform ff__check_limit(p_limit);
    if p_state not in ('building', 'open', 'completed', 'failed', 'cancelled') then
        perform ff__invalid('p_state', 'is not a state of a flow', jsonb_build_object('value', left(p_state, 64)));
    elsif p_partition not between 0 and 255 then
        perform ff__invalid('p_partition', 'must be between 0 and 255', jsonb_build_object('value', p_partition));
    end if;
    return query
        select f.flow_id, f.flow_kind, f.namespace, f.public_flow_state,
               case when f.public_flow_state in ('building', 'open') then 'active' else f.public_flow_state end,
               f.node_count, f.created_at_ms, f.terminal_at_ms
          from ff_flow_core f
         where (p_after is null or f.flow_id > p_after)
           and (p_state is null or f.public_flow_state = p_state)
           and (p_namespace is null or f.namespace = p_namespace)
           and (p_partition is null or f.partition_key = p_partition)
         order by f.flow_id limit p_limit;
end
$$;

comment on function ff_list_flows(text, text, int, uuid, int) is
$$Flows in id order, filtered by state, namespace or partition. p_after: the last flow_id read.

Outcomes: public_flow_state = building | open | completed | failed | cancelled
Outcomes: status = active | completed | failed | cancelled
Nullable: terminal_at_ms
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
