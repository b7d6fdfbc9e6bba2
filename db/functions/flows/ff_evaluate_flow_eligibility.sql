create or replace function ff_evaluate_flow_eligibility(
    p_execution_id text, out status text, out eligibility_state text, out pending_edges int, out detail text
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    r record;
begin
    select c.lifecycle_phase, c.public_state, c.eligibility_state, f.public_flow_state, f.claimable,
           f.cancellation_policy,
           g.policy_kind, g.k, g.group_state, coalesce(g.n_edges, 0) as n_edges,
           coalesce(g.n_edges - g.n_success - g.n_failed - g.n_skipped, 0) as pending
      into r
      from ff_exec_core c
      left join ff_flow_core f on f.flow_id = c.flow_id
      left join ff_edge_group g on g.flow_id = c.flow_id and g.downstream_eid = c.execution_id
     where c.execution_id = v_id;
    if not found then
        status := 'not_found';
        return;
    end if;
    eligibility_state := r.eligibility_state;
    pending_edges := r.pending;
    if r.lifecycle_phase = 'terminal' then
        status := 'terminal';
        detail := r.public_state;
    elsif r.lifecycle_phase <> 'runnable' then
        status := 'not_runnable';
        detail := r.public_state;
    elsif r.n_edges > 0 and r.group_state = 'impossible' then
        status := 'impossible';
        detail := 'too many of its dependencies have ended badly';
    elsif r.n_edges > 0 and r.group_state = 'pending' then
        status := 'blocked_by_dependencies';
        detail := case when coalesce(r.k, 1) > r.n_edges
                       then format('a quorum of %s has only %s edges', r.k, r.n_edges)
                       else format('%s: %s of %s edges are open',
                                   case when r.policy_kind = 'quorum' then format('quorum of %s', r.k)
                                        else r.policy_kind end, r.pending, r.n_edges) end;
    elsif r.public_flow_state = 'building' then
        status := 'flow_held';
        detail := 'the flow was not started yet';
    elsif not r.claimable then
        status := 'flow_cancelled';
        detail := r.cancellation_policy;
    else
        status := 'eligible';
    end if;
end
$$;

comment on function ff_evaluate_flow_eligibility(text) is
$$Eligibility of an execution as far as its flow and dependencies decide it. Read only. Time, quota and budget are
reported in eligibility_state.

Outcomes: status = not_found | terminal | not_runnable | impossible | blocked_by_dependencies | flow_held
Outcomes: status = flow_cancelled | eligible
Nullable: eligibility_state, pending_edges, detail
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
