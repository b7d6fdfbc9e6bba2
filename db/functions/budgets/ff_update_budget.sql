-- Locks: the budget. Repeatable: unchanged.
create or replace function ff_update_budget(
    p_budget_id text,
    p_dimension text,
    p_hard_limit bigint default null,
    p_soft_limit bigint default null,
    out outcome text,
    out breached boolean
)
language plpgsql volatile security definer
as $$
declare
    v_hard bigint := nullif(p_hard_limit, 0);
    v_soft bigint := nullif(p_soft_limit, 0);
    b ff_budget;
    u ff_budget_usage;
    v_clear boolean;
begin
    perform ff__check_limits('', p_dimension, p_hard_limit, p_soft_limit);
    b := ff__lock_budget(p_budget_id);
    select x.* into u from ff_budget_usage x where x.budget_id = p_budget_id and x.dimension = p_dimension;
    outcome := 'unchanged';
    if u.budget_id is null or (u.hard_limit, u.soft_limit) is distinct from (v_hard, v_soft) then
        outcome := 'updated';
        insert into ff_budget_usage as x (budget_id, dimension, hard_limit, soft_limit)
        values (p_budget_id, p_dimension, v_hard, v_soft)
        on conflict (budget_id, dimension) do update
           set hard_limit = v_hard, soft_limit = v_soft, lowered = x.current_value > coalesce(v_hard, x.current_value);
    end if;
    v_clear := b.breached and not exists (select from ff_budget_usage x
                                           where x.budget_id = p_budget_id and x.current_value >= x.hard_limit);
    if v_clear then
        outcome := 'updated';
        delete from ff_budget_breach x where x.budget_id = p_budget_id;
    end if;
    breached := b.breached and not v_clear;
    if outcome = 'updated' then
        update ff_budget x set breached = ff_update_budget.breached, updated_at_ms = ff__now_ms()
         where x.budget_id = p_budget_id;
    end if;
end
$$;

comment on function ff_update_budget(text, text, bigint, bigint) is
$$Sets the limits of one dimension of a budget, 0 or NULL for none; a new dimension is added. A breached budget is
cleared when no hard limit is reached any more: waiting executions become claimable, cancelled ones stay cancelled.

Outcomes: outcome = updated | unchanged
Errors: invalid_input, budget_not_found$$;
-- grant: ff_operator, ff_admin
