-- Locks: the budget. Each call is a reset.
create or replace function ff_reset_budget(p_budget_id text, out outcome text, out next_reset_at_ms bigint)
language plpgsql volatile security definer
as $$
declare
    b ff_budget := ff__lock_budget(p_budget_id);
    v_now bigint := ff__now_ms();
begin
    outcome := 'reset';
    next_reset_at_ms := ff__time_after(v_now, nullif(b.reset_interval_ms, 0));
    perform ff__reset_budget(b, next_reset_at_ms, v_now);
end
$$;

comment on function ff_reset_budget(text) is
$$Starts a new period of a budget: usage 0, not breached; the counts of breaches stay. The next reset, if it has an
interval, is counted from now. Executions that waited for the budget become claimable.

Outcomes: outcome = reset
Nullable: next_reset_at_ms
Errors: invalid_input, budget_not_found$$;
-- grant: ff_operator, ff_admin
