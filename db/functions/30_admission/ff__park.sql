-- A search met an execution that may not start: it waits for its policy or budget from now on, and with it up to 49
-- more that stand behind it on the lane and would hear the same. Crashed work is left as it is, and so is what has a
-- grant or a slot of its own; if starts are what is missing, so are paused attempts, which need none. Never waits.
create or replace function ff__park(e ff_exec, a ff_admission) returns void
language plpgsql volatile
as $$
declare
    v_caps_key text := (select c.caps_key from ff_exec_core c where c.execution_id = e.execution_id);
    v_ids uuid[];
begin
    v_ids := array(
        select x.execution_id
          from (select c.execution_id, c.lifecycle_phase, c.attempt_state, c.reserved_until_ms, c.quota_policy_id,
                       c.budget_ids, c.flow_id
                  from ff_exec_core c
                 where c.lane_id = e.lane_id and c.limited and c.caps_key = v_caps_key and c.priority <= e.priority
                   and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                 order by c.priority desc, c.created_at_ms, c.execution_id
                 limit 1000) x
         where x.lifecycle_phase = 'runnable' and x.execution_id <> e.execution_id
           and (x.reserved_until_ms is null or x.reserved_until_ms <= a.now_ms)
           and (x.flow_id is null
                or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
           and case when a.budget_id is not null then a.budget_id = any (x.budget_ids)
                    else x.quota_policy_id = a.quota_policy_id
                         and (a.outcome <> 'rate_exceeded' or x.attempt_state <> 'attempt_interrupted')
                         and not exists (select from ff_quota_reservation r
                                          where r.quota_policy_id = x.quota_policy_id
                                            and r.execution_id = x.execution_id and r.expires_at_ms > a.now_ms) end
         limit 49);
    update ff_exec_core c set
        eligibility_state = case when a.budget_id is null then 'blocked_by_quota' else 'blocked_by_budget' end,
        blocking_reason = case when a.budget_id is null then 'waiting_for_quota' else 'waiting_for_budget' end,
        blocking_detail = coalesce(a.budget_id, a.quota_policy_id), blocked_budget_id = a.budget_id,
        not_before_ms = case when a.outcome = 'rate_exceeded' then ff__time_after(a.now_ms, a.retry_after_ms) end,
        last_transition_at_ms = a.now_ms, last_mutation_at_ms = a.now_ms
     where c.execution_id = any (array(
           select x.execution_id
             from unnest(e.execution_id || v_ids) u(id)
             join ff_exec_core x on x.execution_id = u.id
                  -- CASE, so that no plan reads all that is ready.
                  and case when x.blocking_reason = 'waiting_for_worker' and x.lifecycle_phase = 'runnable'
                           then a.budget_id = any (x.budget_ids) or x.quota_policy_id = a.quota_policy_id end
              for update of x skip locked));
end
$$;
