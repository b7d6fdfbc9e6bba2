-- A claim met an execution that may not start: it waits for its policy or budget from now on, and with it up to 49
-- more that stand behind it in its queue and would be denied for the same reason. Crashed work is left as it is, and
-- so is what was admitted in the same call or has a slot of its own; if starts are what is missing, so are paused
-- attempts, which need none. Never waits.
create or replace function ff__park(e ff_exec, a ff_admission) returns void
language plpgsql volatile
as $$
declare
    v_ids uuid[];
begin
    v_ids := array(
        select x.execution_id
          from (select c.execution_id, c.state, c.quota_policy_id, c.budget_ids, c.flow_id
                  from ff_execution c
                 where c.ready_in = e.queue_id and c.rank > e.rank order by c.rank limit 1000) x
         where x.state not in ('lease_expired', 'lease_revoked')
           and coalesce(x.execution_id <> all (a.admitted), true)
           and (x.flow_id is null
                or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
           and case when a.budget_id is not null then a.budget_id = any (x.budget_ids)
                    else x.quota_policy_id = a.quota_policy_id
                         and (a.outcome <> 'rate_exceeded' or x.state <> 'ready_resume')
                         and not exists (select from ff_quota_reservation r
                                          where r.quota_policy_id = x.quota_policy_id
                                            and r.execution_id = x.execution_id and r.expires_at_ms > a.now_ms) end
         limit 49);
    v_ids := array(
        select c.execution_id
          from unnest(e.execution_id || v_ids) u(id)
          join ff_execution c on c.execution_id = any (array[u.id])
           and (c.execution_id = e.execution_id or c.ready_in = e.queue_id)
           and c.state not in ('leased', 'lease_expired', 'lease_revoked')
           and (a.budget_id = any (c.budget_ids) or c.quota_policy_id = a.quota_policy_id)
           for no key update of c skip locked);
    update ff_execution c set
        state = ff__moved(c.state, case when a.budget_id is null then 'quota' else 'budget' end), ready_in = null,
        due_at_ms = ff__last_ms(), delay_until_ms = null, blocking_detail = coalesce(a.budget_id, a.quota_policy_id),
        blocked_budget_id = a.budget_id,
        not_before_ms = case when a.outcome = 'rate_exceeded' then ff__time_after(a.now_ms, a.retry_after_ms) end,
        last_transition_at_ms = a.now_ms, last_mutation_at_ms = a.now_ms
     where c.execution_id = any (v_ids);
end
$$;

-- The state at another place for work whose next claim does the same.
create or replace function ff__moved(p_state ff_state, p_place text) returns ff_state
language plpgsql stable
as $$
begin
    return (select t.state from ff_state_word t
             where t.place = p_place
               and t.attempt_state = (select f.attempt_state from ff_state_word f where f.state = p_state));
end
$$;
