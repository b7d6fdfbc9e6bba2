-- Locks: breach rows, executions, flows, without waiting. A reset waits for the breach row, so cancellations here
-- precede it. Safe to run concurrently.
create or replace function ff_sweep_budget_breaches(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    -- The executions of each breach, then the breach itself, which is done when no execution is left.
    open v_scan for
        select k.key
          from (select x.budget_id, x.action from ff_budget_breach x order by x.breached_at_ms) b
         cross join lateral (
               select jsonb_build_array(b.budget_id, c.execution_id)::text as key from ff_execution c
                where c.budget_ids @> array[b.budget_id] and c.terminal_at_ms is null
                  and ff__is_cancel_covered(b.action, c.state, c.lease_expires_at_ms, v_now)
               union all
               select jsonb_build_array(b.budget_id)::text) k;
    select s.* into processed, errors, more from ff__sweep('sweep_budget_breaches', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_budget_breaches(int) is
$$Cancels executions attached to breached budgets with on_hard_limit cancel_all (all of them) or cancel_pending (those
that do not run). The reason is budget_exceeded.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
