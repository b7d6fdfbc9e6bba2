-- Locks: the flow, the downstream (waits for them). Repeatable.
create or replace function ff_set_edge_group_policy(
    p_flow_id uuid,
    p_downstream_execution_id text,
    p_policy text,
    p_k int default null,
    p_on_satisfied text default 'cancel_remaining',
    out outcome text
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_downstream_execution_id);
    v_on_satisfied text := case when p_policy <> 'all_of' then p_on_satisfied end;
    e ff_exec;
    f ff_flow_core;
    g ff_edge_group;
begin
    perform ff__check_group_policy(p_policy, p_k, p_on_satisfied);
    f := ff__lock_flow(p_flow_id);
    e := ff__open(v_id, true);
    if e.flow_id is distinct from p_flow_id then
        perform ff__raise_not_in_flow(p_flow_id, p_downstream_execution_id, e.flow_id, 'downstream');
    end if;
    select x.* into g from ff_edge_group x where x.flow_id = p_flow_id and x.downstream_eid = v_id;
    if g.flow_id is not null
       and (g.policy_kind, g.k, g.on_satisfied) is not distinct from (p_policy::text, p_k, v_on_satisfied::text) then
        outcome := 'already_set';
    elsif f.public_flow_state in ('completed', 'failed', 'cancelled') then
        perform ff__raise_flow_over(f);
    elsif exists (select from ff_edge d where d.downstream_eid = v_id) then
        perform ff__raise('edge_group_policy_already_fixed',
                          'the execution has edges: its policy cannot change any more',
                          jsonb_build_object('execution_id', p_downstream_execution_id, 'flow_id', p_flow_id,
                                             'policy', coalesce(g.policy_kind, 'all_of'), 'k', g.k,
                                             'on_satisfied', g.on_satisfied));
    else
        outcome := 'set';
        insert into ff_edge_group (flow_id, downstream_eid, policy_kind, k, on_satisfied, group_state)
        values (p_flow_id, v_id, p_policy, p_k, v_on_satisfied,
                case when e.lifecycle_phase = 'terminal' then 'cancelled' else 'pending' end)
        on conflict on constraint ff_edge_group_pkey do update
           set policy_kind = excluded.policy_kind, k = excluded.k, on_satisfied = excluded.on_satisfied;
    end if;
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_set_edge_group_policy(uuid, text, text, int, text) is
$$Sets how many of the upstream executions of a member must succeed: all_of (the default), any_of, or a quorum of p_k.
Must be called before the member has an edge. p_on_satisfied: what happens to upstream executions that have not ended
when the group is decided: cancel_remaining cancels those that no other member waits for, let_run leaves them.

Outcomes: outcome = set | already_set
Errors: invalid_input, invalid_execution_id, flow_not_found, execution_not_in_flow, flow_already_terminal
Errors: edge_group_policy_already_fixed$$;
-- grant: ff_producer, ff_operator, ff_admin
