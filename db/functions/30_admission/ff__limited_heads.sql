-- ff__heads for work that needs admission: leaves out what hangs on policies and budgets that have said no in this
-- call, but for executions that have a slot of their own, and for paused or crashed attempts where starts are what is
-- missing (p_rated). p_busy are policies that another transaction has locked. p_bound: how far to look per capability
-- set, NULL for as far as it takes. As far as it takes means policy by policy if one is locked: its work is not read.
create or replace function ff__limited_heads(
    p_lane_id text, p_keys text[], p_namespace text, p_now_ms bigint, p_limit int, p_policies text[], p_rated text[],
    p_busy text[], p_budgets text[], p_bound int
) returns uuid[]
language plpgsql stable
as $$
declare
    v_reserved uuid[] := '{}'::uuid[];
begin
    if p_policies <> '{}' or p_rated <> '{}' then
        -- Of their own policy: a slot of another one does not help them past it.
        v_reserved := array(select r.execution_id from ff_quota_reservation r
                             where r.quota_policy_id = any (p_policies || p_rated) and r.expires_at_ms > p_now_ms
                               and r.quota_policy_id = (select c.quota_policy_id from ff_exec_core c
                                                         where c.execution_id = r.execution_id));
    end if;
    if p_bound is null and p_busy <> '{}' then
        return array(
            with recursive policy(caps_key, id) as (
                select k.caps_key, (select coalesce(c.quota_policy_id, '') from ff_exec_core c
                                     where c.lane_id = p_lane_id and c.limited and c.caps_key = k.caps_key
                                       and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                                     order by coalesce(c.quota_policy_id, '') limit 1)
                  from unnest(p_keys) k(caps_key)
                union all
                select p.caps_key, (select coalesce(c.quota_policy_id, '') from ff_exec_core c
                                     where c.lane_id = p_lane_id and c.limited and c.caps_key = p.caps_key
                                       and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                                       and coalesce(c.quota_policy_id, '') > p.id
                                     order by coalesce(c.quota_policy_id, '') limit 1)
                  from policy p where p.id is not null
            )
            select h.execution_id
              from policy p -- '' is work that has budgets alone
             cross join lateral (
                   select x.execution_id, x.priority, x.created_at_ms
                     from ff_exec_core x
                    where x.lane_id = p_lane_id and x.limited and x.caps_key = p.caps_key
                      and x.blocking_reason = 'waiting_for_worker' and not x.flow_stopped
                      and coalesce(x.quota_policy_id, '') = p.id
                      and (x.reserved_until_ms is null or x.reserved_until_ms <= p_now_ms)
                      and (p_namespace is null or x.namespace = p_namespace)
                      and (x.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                      and (x.execution_id = any (v_reserved)
                           or p.id <> all (p_policies)
                              and (p.id <> all (p_rated) or x.attempt_state = 'attempt_interrupted'))
                      and (x.budget_ids is null or not x.budget_ids && p_budgets)
                    order by x.priority desc, x.created_at_ms, x.execution_id
                    limit p_limit) h
             where p.id is not null and p.id <> all (p_busy)
             order by h.priority desc, h.created_at_ms, h.execution_id
             limit p_limit);
    end if;
    return array(
        select h.execution_id
          from unnest(p_keys) k(caps_key)
         cross join lateral (
               select x.execution_id, x.priority, x.created_at_ms
                 from (select c.execution_id, c.priority, c.created_at_ms, c.reserved_until_ms, c.namespace, c.flow_id,
                              c.quota_policy_id, c.budget_ids, c.attempt_state
                         from ff_exec_core c
                        where c.lane_id = p_lane_id and c.limited and c.caps_key = k.caps_key
                          and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                        order by c.priority desc, c.created_at_ms, c.execution_id
                        limit p_bound) x
                where (x.reserved_until_ms is null or x.reserved_until_ms <= p_now_ms)
                  and (p_namespace is null or x.namespace = p_namespace)
                  and (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                  and (x.quota_policy_id is null or x.execution_id = any (v_reserved)
                       or x.quota_policy_id <> all (p_policies)
                          and (x.quota_policy_id <> all (p_rated) or x.attempt_state = 'attempt_interrupted'))
                  and (x.quota_policy_id is null or x.quota_policy_id <> all (p_busy))
                  and (x.budget_ids is null or not x.budget_ids && p_budgets)
                order by x.priority desc, x.created_at_ms, x.execution_id
                limit p_limit) h
         order by h.priority desc, h.created_at_ms, h.execution_id
         limit p_limit);
end
$$;
