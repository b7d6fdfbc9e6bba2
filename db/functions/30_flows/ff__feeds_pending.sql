-- Whether a member is still needed: an applied edge of it leads to a group that is not decided. A staged edge feeds nothing.
create or replace function ff__feeds_pending(p_flow_id uuid, p_upstream uuid) returns boolean
language sql stable
as $$
    select exists (
        select from ff_edge d
         cross join lateral (
               select k.group_state from ff_edge_group k
                where k.flow_id = p_flow_id and k.downstream_eid = d.downstream_eid offset 0) g
         where d.upstream_eid = p_upstream and d.edge_state = 'applied'
           and g.group_state = 'pending')
$$;
