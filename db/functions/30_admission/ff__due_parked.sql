-- Executions that are parked under a policy and may go: no more than it has room for and p_limit, highest priority and
-- then oldest first; paused attempts need a slot alone. p_lane_id: on that lane only. p_now_ms NULL: whether or not
-- their time has come. What has failed and waits for its next try is left out. Locks them, never waits.
create or replace function ff__due_parked(p_quota_policy_id text, p_lane_id text, p_now_ms bigint, p_limit int)
returns uuid[]
language plpgsql volatile
as $$
declare
    v_slots bigint;
    v_starts bigint;
    v_bound int;
    v_seen bigint;
    v_ids uuid[];
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
begin
    select x.slots, x.starts into v_slots, v_starts from ff__room(p_quota_policy_id, coalesce(p_now_ms, ff__now_ms())) x;
    p_limit := least(p_limit, v_slots, nullif(v_starts, 0));
    if p_limit = 0 then
        return '{}'::uuid[];
    end if;
    -- The first thousand, as a rule; all, if these hide what may go.
    v_bound := p_limit + 1000;
    loop
        select count(*),
               array_agg(x.execution_id order by x.priority desc, x.created_at_ms, x.execution_id)
                   filter (where (p_lane_id is null or x.lane_id = p_lane_id)
                             and (p_now_ms is null or x.not_before_ms is null or x.not_before_ms <= p_now_ms)
                             and (v_starts is null or v_starts > 0 or x.attempt_state = 'attempt_interrupted')
                             and not (v_failed and ff__is_backed_off('sweep_admissions', x.execution_id::text)))
          into v_seen, v_ids
          from (values (0), (1)) t(timed)
         cross join lateral (
               select y.execution_id, y.priority, y.created_at_ms, y.lane_id, y.attempt_state, y.not_before_ms
                 from ff_exec_core y
                where y.limited and y.eligibility_state = 'blocked_by_quota'
                  and case y.eligibility_state when 'blocked_by_budget' then y.blocked_budget_id
                                               else y.quota_policy_id end = p_quota_policy_id
                  and (y.not_before_ms is not null)::int = t.timed
                order by y.priority desc, y.created_at_ms, y.execution_id
                limit v_bound) x;
        v_ids := array(
            select c.execution_id
              from unnest(v_ids) with ordinality u(id, n) join ff_exec_core c on c.execution_id = any (array[u.id])
                   -- CASE, so that no plan reads all that is parked.
                   and case when c.eligibility_state = 'blocked_by_quota' then c.quota_policy_id = p_quota_policy_id end
             order by u.n limit p_limit for update of c skip locked);
        exit when v_ids <> '{}' or v_bound is null or v_seen < v_bound or v_starts = 0;
        v_bound := null;
    end loop;
    return v_ids;
end
$$;
