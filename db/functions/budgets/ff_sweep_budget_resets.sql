-- Locks: budgets and their breach rows, without waiting. Safe to run concurrently.
create or replace function ff_sweep_budget_resets(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        select jsonb_build_array(g.budget_id)::text from ff_budget g
         where g.next_reset_at_ms <= v_now order by g.next_reset_at_ms;
    select s.* into processed, errors, more from ff__sweep('sweep_budget_resets', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_budget_resets(int) is
$$Starts a new period of each budget whose reset is due. Reset times stay on their grid, even if this runs late.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
