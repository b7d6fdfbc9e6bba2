-- Whether somebody still waits for a member: an edge of it that is not resolved leads to a group that is not decided.
create or replace function ff__feeds_pending(p_flow_id uuid, p_upstream uuid) returns boolean
language sql stable
as $$
    select exists (
        select from ff_edge d
          left join ff_edge_group g on g.flow_id = d.flow_id and g.downstream_eid = d.downstream_eid
         where d.flow_id = p_flow_id and d.upstream_eid = p_upstream and d.edge_state in ('staged', 'applied')
           and coalesce(g.group_state, 'pending') = 'pending')
$$;
