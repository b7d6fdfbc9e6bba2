-- Executions that are parked and may go: under a quota policy as many as it has room for, under a budget (p_budget)
-- all if it no longer stops anything; p_limit at most, in the order of rank; paused attempts need a slot alone.
-- p_lane_id: on that lane only. p_now_ms NULL: whether or not their time has come. What has failed and waits for its
-- next try is left out. Locks them, never waits.
create or replace function ff__due_parked(
    p_key text, p_budget boolean, p_lane_id text, p_now_ms bigint, p_limit int
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_place text := case when p_budget then 'budget' else 'quota' end;
    v_slots bigint;
    v_starts bigint;
    v_bound int;
    v_seen bigint;
    v_ids uuid[];
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
begin
    if not p_budget then
        select x.slots, x.starts into v_slots, v_starts from ff__room(p_key, coalesce(p_now_ms, ff__now_ms())) x;
    elsif ff__budget_block(array[p_key]) is not null then
        return '{}'::uuid[];
    end if;
    p_limit := least(p_limit, v_slots, nullif(v_starts, 0));
    if p_limit = 0 then
        return '{}'::uuid[];
    end if;
    -- The first thousand, as a rule; all, if none of these may go.
    v_bound := p_limit + 1000;
    loop
        select count(*),
               array_agg(x.execution_id order by x.rank)
                   filter (where (p_lane_id is null or x.lane_id = p_lane_id)
                             and (p_now_ms is null or x.not_before_ms is null or x.not_before_ms <= p_now_ms)
                             and (v_starts is null or v_starts > 0 or x.state = 'quota_resume')
                             and not (v_failed and ff__is_backed_off('sweep_admissions', x.execution_id::text)))
          into v_seen, v_ids
          from ff_state_word w cross join (values (0), (1)) t(timed)
         cross join lateral (
               select y.execution_id, y.rank, y.lane_id, y.state, y.not_before_ms
                 from ff_execution y
                where y.limited and y.terminal_at_ms is null and y.state = w.state
                  and coalesce(y.blocked_budget_id, y.quota_policy_id, '') = p_key
                  and (y.not_before_ms is not null)::int = t.timed
                order by y.rank limit v_bound) x
         where w.place = v_place;
        v_ids := array(
            select c.execution_id
              from unnest(v_ids) u(id) join ff_execution c on c.execution_id = any (array[u.id])
               and case when p_budget then c.state in ('budget', 'budget_retry', 'budget_replay', 'budget_resume')
                        else c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume') end
               and coalesce(c.blocked_budget_id, c.quota_policy_id, '') = p_key
             order by c.rank limit p_limit for no key update of c skip locked);
        exit when v_ids <> '{}' or v_bound is null or v_seen < v_bound or v_starts = 0;
        v_bound := null;
    end loop;
    return v_ids;
end
$$;
