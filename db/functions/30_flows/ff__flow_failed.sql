-- Whether a member of a flow ended failed, cancelled or expired without being tolerated: tolerated is one all of whose
-- outgoing edges, at least one, lead to satisfied groups (lost races, stragglers of a quorum, expected failures).
create or replace function ff__flow_failed(p_flow_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return exists (
        select from ff_exec_core c
         where c.flow_id = p_flow_id and c.terminal_outcome in ('failed', 'cancelled', 'expired')
           and (not exists (select from ff_edge d where d.upstream_eid = c.execution_id)
                or exists (select from ff_edge d
                             left join ff_edge_group g
                               on g.flow_id = d.flow_id and g.downstream_eid = d.downstream_eid
                            where d.upstream_eid = c.execution_id
                              and g.group_state is distinct from 'satisfied')));
end
$$;
