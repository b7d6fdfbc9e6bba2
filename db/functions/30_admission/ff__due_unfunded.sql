-- Executions that are parked under a budget which no longer stops anything, up to p_limit, highest priority and then
-- oldest first. p_lane_id: on that lane only. What has failed and waits for its next try is left out. Locks
-- them, never waits.
create or replace function ff__due_unfunded(p_budget_id text, p_lane_id text, p_now_ms bigint, p_limit int)
returns uuid[]
language plpgsql volatile
as $$
declare
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
begin
    if ff__budget_block(array[p_budget_id]) is not null then
        return '{}'::uuid[];
    end if;
    return array(
        select c.execution_id
          from ff_exec_core c
         where c.limited and c.eligibility_state = 'blocked_by_budget'
           and case c.eligibility_state when 'blocked_by_budget' then c.blocked_budget_id else c.quota_policy_id end
               = p_budget_id
           and (p_lane_id is null or c.lane_id = p_lane_id)
           and (c.not_before_ms is null or c.not_before_ms <= p_now_ms)
           and not (v_failed and ff__is_backed_off('sweep_admissions', c.execution_id::text))
         order by (c.not_before_ms is not null)::int, c.priority desc, c.created_at_ms, c.execution_id
         limit p_limit for update skip locked);
end
$$;
