-- Rules of admission that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_quotas() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select 'limits_not_mirrored', ff__wire_id(e.partition_key, e.execution_id),
           'has a quota policy, budgets or a reservation, and is not marked as limited'
      from ff_execution e
     where not e.limited and (e.quota_policy_id is not null or e.budget_ids is not null
                              or exists (select from ff_quota_reservation r where r.execution_id = e.execution_id))
    union all
    select 'terminal_reservation', ff__wire_id(e.partition_key, e.execution_id),
           format('ended, and holds a slot of %s', r.quota_policy_id)
      from ff_quota_reservation r join ff_execution e on e.execution_id = r.execution_id
     where e.terminal_at_ms is not null
    union all
    -- Executions whose leases this policy admitted under its current limits.
    select 'concurrency_cap', q.quota_policy_id, format('%s run, the cap is %s', count(*), q.max_concurrent)
      from ff_quota_policy q
      join ff_execution e on e.quota_policy_id = q.quota_policy_id and e.state = 'leased'
                             and e.lease_expires_at_ms > ff__now_ms()
                             and e.lease_id is distinct from e.unadmitted_lease_id
                             and (e.lease_acquired_at_ms > q.updated_at_ms or q.updated_at_ms = q.created_at_ms)
     where q.max_concurrent > 0
     group by q.quota_policy_id, q.max_concurrent having count(*) > q.max_concurrent
    union all
    -- Of max + 1 consecutive starts, the first must be outside the window of the last.
    select 'window_limit', x.quota_policy_id,
           format('more than %s starts in the window that ends at %s', x.max_requests_per_window, x.admitted_at_ms)
      from (select q.quota_policy_id, q.max_requests_per_window, q.window_seconds, w.admitted_at_ms,
                   lag(w.admitted_at_ms, least(q.max_requests_per_window, 2147483647)::int)
                       over (partition by q.quota_policy_id order by w.admitted_at_ms) as before_ms
              from ff_quota_policy q
              join ff_quota_window w on w.quota_policy_id = q.quota_policy_id and w.admitted_at_ms >= q.updated_at_ms
             where q.max_requests_per_window > 0) x
     where x.before_ms > x.admitted_at_ms - x.window_seconds * 1000
    union all
    -- Only executions unchanged since the lease was granted: attaching a budget sets last_mutation_at_ms.
    select 'started_on_a_breached_budget', ff__wire_id(e.partition_key, e.execution_id),
           format('leased at %s, budget %s is breached since %s', e.lease_acquired_at_ms, b.budget_id,
                  b.last_breach_at_ms)
      from ff_execution e
      join ff_budget b on b.budget_id = any (e.budget_ids) and b.breached and b.enforcement_mode = 'strict'
     where e.state = 'leased' and e.last_mutation_at_ms = e.lease_acquired_at_ms
       and e.lease_id is distinct from e.unadmitted_lease_id
       and b.last_breach_at_ms < e.lease_acquired_at_ms - 1000
    union all
    select 'parked_for_nothing', ff__wire_id(e.partition_key, e.execution_id),
           format('%s without anything to wait for', e.eligibility_state)
      from ff_exec_core e
     where e.eligibility_state = 'blocked_by_quota' and (e.quota_policy_id is null or not e.limited)
        or e.eligibility_state = 'blocked_by_budget'
           and (e.budget_ids is null or e.blocked_budget_id is null or not e.limited);
end
$$;
