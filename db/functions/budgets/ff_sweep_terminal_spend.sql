-- Locks: budgets and executions, without waiting. Safe to run concurrently.
create or replace function ff_sweep_terminal_spend(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_scan refcursor;
begin
    -- Ended executions with spend to release, or marked with none left, in the order of ff_execution_limits; then spend
    -- recorded before its execution existed, if the execution has ended since.
    open v_scan for
        select jsonb_build_array(l.budget_id, c.execution_id)::text
          from (select x.execution_id
                  from ff_execution x
                 where x.spends and x.state in ('completed', 'failed', 'cancelled', 'expired', 'skipped')
                 order by x.state, coalesce(x.blocked_budget_id, x.quota_policy_id, ''),
                          (x.not_before_ms is not null)::int, x.rank) c
          left join lateral (
               select distinct x.budget_id from ff_budget_usage_by_exec x
                 join ff_budget b on b.budget_id = x.budget_id and b.release_on_terminal
                where x.execution_id = c.execution_id) l on true
        union all
        select jsonb_build_array(l.budget_id, l.execution_id)::text
          from ff_budget_usage_by_exec l
         where l.unbound
           -- A scalar subquery, so that no plan joins all executions.
           and (select x.terminal_at_ms from ff_execution x where x.execution_id = l.execution_id) is not null;
    select s.* into processed, errors, more from ff__sweep('sweep_terminal_spend', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_terminal_spend(int) is
$$Releases what ended executions spent by ff_record_spend on budgets with release_on_terminal, so that a dead worker
holds no reservation.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
