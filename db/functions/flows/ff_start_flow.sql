-- Locks: the flow, all its members in id order (waits for them). Repeatable.
create or replace function ff_start_flow(p_flow_id uuid, out outcome text, out applied_edges int)
language plpgsql volatile security definer
as $$
declare
    v_now bigint;
    v_child uuid;
    v_resolved uuid[];
    g record;
    f ff_flow_core := ff__lock_flow(p_flow_id);
begin
    applied_edges := 0;
    if f.public_flow_state = 'cancelled' then
        perform ff__raise_flow_over(f);
    elsif f.public_flow_state <> 'building' then
        outcome := 'already_started';
        perform ff__close_flow(p_flow_id);
        return;
    end if;
    outcome := 'started';
    perform from (select c.execution_id from ff_execution c where c.flow_id = p_flow_id
                   order by c.execution_id for no key update) x;
    v_now := ff__now_ms();

    -- Apply every staged edge; if its upstream has ended, resolve it with that outcome.
    update ff_edge d
       set applied_at_ms = v_now,
           edge_state = case when u.terminal_outcome = 'none' then 'applied'
                             else ff__edge_result(d.dependency_kind, u.terminal_outcome) end,
           upstream_outcome = nullif(u.terminal_outcome, 'none'),
           resolved_at_ms = case when u.terminal_outcome <> 'none' then v_now end
      from ff_exec_core u
     where d.flow_id = p_flow_id and d.edge_state = 'staged' and u.execution_id = d.upstream_eid;
    get diagnostics applied_edges = row_count;
    insert into ff_edge_group (flow_id, downstream_eid, policy_kind, group_state)
    select distinct p_flow_id, d.downstream_eid, 'all_of', 'pending' from ff_edge d where d.flow_id = p_flow_id
    on conflict do nothing;
    with n as (
        select d.downstream_eid, count(*)::int as edges,
               count(*) filter (where d.edge_state = 'satisfied')::int as success,
               count(*) filter (where d.edge_state = 'failed')::int as failed,
               count(*) filter (where d.edge_state = 'skipped')::int as skipped
          from ff_edge d where d.flow_id = p_flow_id group by d.downstream_eid
    ), judged as (
        update ff_edge_group x
           set n_edges = n.edges, n_success = n.success, n_failed = n.failed, n_skipped = n.skipped,
               group_state = j.group_state,
               decided_at_ms = case when j.group_state = x.group_state then x.decided_at_ms
                                    when j.group_state <> 'pending' then v_now end
          from n
          join ff_edge_group b on b.flow_id = p_flow_id and b.downstream_eid = n.downstream_eid
          join ff_exec_core c on c.execution_id = n.downstream_eid
         cross join lateral (
               select case
                   when b.group_state = 'cancelled' or b.policy_kind <> 'all_of' and b.group_state <> 'pending'
                   then b.group_state
                   when c.lifecycle_phase = 'terminal'
                   then coalesce(nullif(ff__group_state(b.policy_kind, b.k, n.edges, n.success, n.failed, n.skipped),
                                        'pending'), 'cancelled')
                   else ff__group_state(b.policy_kind, b.k, n.edges, n.success, n.failed, n.skipped) end) j(group_state)
         where x.flow_id = p_flow_id and x.downstream_eid = n.downstream_eid
        returning x.downstream_eid, x.group_state
    )
    select coalesce(array_agg(j.downstream_eid order by j.downstream_eid)
                        filter (where j.group_state in ('satisfied', 'impossible')), '{}')
      into v_resolved from judged j;
    for g in
        select x.* from ff_edge_group x
         where x.flow_id = p_flow_id and x.policy_kind = 'quorum' and x.k > x.n_edges
         order by x.downstream_eid limit 1
    loop
        perform ff__raise('quorum_unreachable', format('a quorum of %s has %s edges', g.k, g.n_edges),
                          jsonb_build_object('flow_id', p_flow_id, 'k', g.k, 'n', g.n_edges,
                                             'downstream', ff__wire_id(f.partition_key, g.downstream_eid)));
    end loop;

    update ff_flow_core x set public_flow_state = 'open', last_mutation_at_ms = v_now where x.flow_id = p_flow_id;
    -- Settle all members at once: members with a pending group wait for it, the others enter their queues.
    update ff_execution c
       set state = b.state, ready_in = null, due_at_ms = null, blocking_detail = null, blocked_budget_id = null,
           last_transition_at_ms = v_now, last_mutation_at_ms = v_now
      from (select x.execution_id, y.state
              from ff_edge_group k
              join ff_execution x on x.execution_id = k.downstream_eid
              join ff_state_word w on w.state = x.state and w.lifecycle_phase = 'runnable' and w.place <> 'held'
              join ff_state_word y on y.place = 'children' and y.attempt_state = w.attempt_state
             where k.flow_id = p_flow_id and k.n_edges > 0 and k.group_state = 'pending') b
     where c.execution_id = b.execution_id;
    foreach v_child in array v_resolved loop
        perform ff__resettle_child(ff__open(v_child, true));
    end loop;
    perform ff__cancel_siblings(p_flow_id, v_resolved);
    perform ff__release_members(p_flow_id, v_now);
    perform ff__emit_flow(p_flow_id, 'started', v_now, null, jsonb_build_object('applied_edges', applied_edges));
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_start_flow(uuid) is
$$Starts a flow created with p_hold: applies the edges that are still staged and makes its members claimable.

Outcomes: outcome = started | already_started
Errors: invalid_input, flow_not_found, flow_already_terminal, quorum_unreachable$$;
-- grant: ff_producer, ff_operator, ff_admin
