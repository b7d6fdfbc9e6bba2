-- ff__heads for queues of work that needs admission: leaves out what hangs on policies and budgets that have denied
-- work in this call, but for executions that have a slot of their own, and for paused or crashed attempts where
-- starts are what is missing (p_rated). p_busy are policies that another transaction has locked. p_bound: how many
-- rows to read per queue, NULL for as many as it takes; if a policy is locked, that means policy by policy: its work
-- is not read.
create or replace function ff__limited_heads(
    p_queues int[], p_now_ms bigint, p_take int, p_policies text[], p_rated text[], p_busy text[], p_budgets text[],
    p_bound int
) returns uuid[]
language plpgsql stable
as $$
declare
    v_reserved uuid[] := '{}'::uuid[];
    v_due uuid[];
begin
    if p_policies <> '{}' or p_rated <> '{}' then
        -- Of their own policy: a slot of another one does not help them past it.
        v_reserved := array(select r.execution_id from ff_quota_reservation r
                             where r.quota_policy_id = any (p_policies || p_rated) and r.expires_at_ms > p_now_ms
                               and r.quota_policy_id = (select c.quota_policy_id from ff_execution c
                                                         where c.execution_id = r.execution_id));
    end if;
    v_due := array(
        select h.execution_id
          from unnest(p_queues) q(id)
         cross join lateral (
               select x.execution_id
                 from ff_execution x
                where x.queue_id = q.id and x.due_at_ms <= p_now_ms and ff__claimable(x, p_now_ms)
                  and (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                  and not ff__denied(x, v_reserved, p_policies, p_rated, p_busy, p_budgets)
                order by x.due_at_ms limit greatest(p_take, 200)) h);
    if p_bound is null and p_busy <> '{}' then
        return v_due || array(
            with recursive policy(state, id) as (
                select s.state, '' collate "C" -- work that has budgets alone
                  from unnest('{ready,ready_retry,ready_replay,ready_resume,lease_expired,lease_revoked}'::ff_state[])
                       s(state)
                union all
                select p.state, (select coalesce(c.blocked_budget_id, c.quota_policy_id, '') from ff_execution c
                                  where c.limited and c.terminal_at_ms is null and c.state = p.state
                                    and coalesce(c.blocked_budget_id, c.quota_policy_id, '') > p.id
                                  order by coalesce(c.blocked_budget_id, c.quota_policy_id, '') limit 1)
                  from policy p where p.id is not null
            )
            select h.execution_id
              from policy p
             cross join lateral (
                   select x.execution_id, x.rank
                     from ff_execution x
                    where x.limited and x.terminal_at_ms is null and x.state = p.state
                      and coalesce(x.blocked_budget_id, x.quota_policy_id, '') = p.id
                      and x.ready_in = any (p_queues)
                      and (x.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                      and not ff__denied(x, v_reserved, p_policies, p_rated, p_busy, p_budgets)
                    order by (x.not_before_ms is not null)::int, x.rank limit p_take) h
             where p.id <> all (p_busy)
             order by h.rank limit p_take);
    end if;
    return v_due || array(
        select h.execution_id
          from unnest(p_queues) q(id)
         cross join lateral (
               select x.execution_id, x.rank
                 from (select c.* from ff_execution c where c.ready_in = q.id order by c.rank limit p_bound) x
                where (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                  and not ff__denied(x::ff_execution, v_reserved, p_policies, p_rated, p_busy, p_budgets)
                order by x.rank limit p_take) h
         order by h.rank limit p_take);
end
$$;

-- Whether a policy or budget has denied an execution in this call (see ff__limited_heads).
create or replace function ff__denied(
    c ff_execution, p_reserved uuid[], p_policies text[], p_rated text[], p_busy text[], p_budgets text[]
) returns boolean
language sql immutable parallel safe
as $$
    select coalesce((c).budget_ids && p_budgets
                    or (c).quota_policy_id = any (p_busy)
                    or ((c).quota_policy_id = any (p_policies)
                        or (c).quota_policy_id = any (p_rated)
                           and (c).state in ('ready', 'ready_retry', 'ready_replay', 'delayed', 'delayed_replay',
                                             'backoff_retry'))
                       and (c).execution_id <> all (p_reserved), false)
$$;
