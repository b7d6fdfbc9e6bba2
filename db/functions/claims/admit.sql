-- Checks admission of the executions that a claim has locked, and parks those that are denied. p_hold_ms: reserves
-- their slots for that long, instead of until the leases are created. Adds the denying policies and budgets to
-- p_policies, p_rated (rate of starts exceeded), p_busy and p_budgets (see ff__pick). p_admitted: those that may start,
-- in the order given. Never waits.
create or replace function ff__admit_many(
    p_ids uuid[], p_hold_ms bigint, inout p_policies text[], inout p_rated text[], inout p_busy text[],
    inout p_budgets text[], out p_admitted uuid[]
)
language plpgsql volatile
as $$
declare
    v_denied uuid[] := '{}'::uuid[];
    a ff_admission;
begin
    for a in select x.* from ff__check_admissions(p_ids, p_hold_ms) x loop
        v_denied := v_denied || a.denied;
        case a.outcome
            when 'busy' then
                p_busy := p_busy || a.quota_policy_id;
                continue;
            when 'budget_exceeded' then
                p_budgets := p_budgets || a.budget_id;
            when 'rate_exceeded' then
                p_rated := p_rated || a.quota_policy_id;
            else
                p_policies := p_policies || a.quota_policy_id;
        end case;
        perform ff__park(ff__open(a.denied[1]), a);
    end loop;
    p_admitted := array(select u.id from unnest(p_ids) with ordinality u(id, n)
                         where u.id <> all (v_denied) order by u.n);
end
$$;

-- Parks an execution that was denied admission: it waits for its policy or budget. Also parks up to 49 executions
-- behind it in its queue that would be denied for the same reason. Does not park crashed executions, executions
-- admitted in the same call and executions that hold a slot, nor, if the rate of starts is exceeded, paused attempts,
-- which do not count as starts. Never waits.
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
        state = ff__state_at_place(c.state, case when a.budget_id is null then 'quota' else 'budget' end),
        ready_in = null, due_at_ms = ff__max_time_ms(), delay_until_ms = null,
        blocking_detail = coalesce(a.budget_id, a.quota_policy_id), blocked_budget_id = a.budget_id,
        not_before_ms = case when a.outcome = 'rate_exceeded' then ff__time_after(a.now_ms, a.retry_after_ms) end,
        last_transition_at_ms = a.now_ms, last_mutation_at_ms = a.now_ms
     where c.execution_id = any (v_ids);
end
$$;
