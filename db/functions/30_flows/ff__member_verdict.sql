-- What a flow says of a member that is about to wait: cancelled (the flow was, and its members are not to go on),
-- impossible, pending (its edge group), or NULL: go on. Reads flow and group in a statement of its own, after the
-- member's row was locked: a group changes only under that lock.
create or replace function ff__member_verdict(e ff_exec) returns text
language plpgsql volatile
as $$
declare
    v_verdict text;
begin
    select case when f.public_flow_state = 'cancelled' and not f.claimable then 'cancelled'
                when g.n_edges > 0 and g.group_state in ('impossible', 'pending') then g.group_state end
      into v_verdict
      from ff_flow_core f
      left join ff_edge_group g on g.flow_id = f.flow_id and g.downstream_eid = e.execution_id
     where f.flow_id = e.flow_id;
    return v_verdict;
end
$$;
