-- What a step of the budgets does with one row; true if it was processed, as ff__sweep_row. p_key: a json array of the
-- budget and, except for a reset, the execution; a breach without one is over once nothing is left that it ends. Locks,
-- without waiting: to reset, the budget and its breach; to cancel, the breach and the execution, so that a reset comes
-- after that; to release spend, the execution and the budget.
create or replace function ff__sweep_budget(p_name text, p_key text) returns boolean
language plpgsql volatile
as $$
declare
    v_budget text := p_key::jsonb ->> 0;
    v_id uuid := (p_key::jsonb ->> 1)::uuid;
    v_now bigint;
    v_action text;
    b ff_budget;
    e ff_exec;
begin
    if p_name = 'sweep_terminal_spend' then
        perform from ff_execution c where c.execution_id = v_id for update skip locked;
        if not found then
            return false;
        elsif v_budget is null then
            perform ff__spend_given_back(v_id);
            return false;
        end if;
    else
        select x.action into v_action from ff_budget_breach x where x.budget_id = v_budget for update skip locked;
        if not found and exists (select from ff_budget_breach x where x.budget_id = v_budget) then
            return false;
        end if;
    end if;
    if p_name <> 'sweep_budget_breaches' then
        select x.* into b from ff_budget x where x.budget_id = v_budget for update skip locked;
        if not found then
            return false;
        end if;
    end if;
    v_now := ff__now_ms();
    case p_name
        when 'sweep_budget_resets' then
            if (b.next_reset_at_ms <= v_now) is not true then
                return false;
            end if;
            perform ff__reset_budget(
                b, ff__time_after(b.next_reset_at_ms,
                                  b.reset_interval_ms * ((v_now - b.next_reset_at_ms) / b.reset_interval_ms + 1)), v_now);
        when 'sweep_terminal_spend' then
            if not exists (select from ff_budget_usage_by_exec l
                            where l.budget_id = v_budget and l.execution_id = v_id)
               or not exists (select from ff_execution c
                               where c.execution_id = v_id and c.terminal_at_ms is not null) then
                return false;
            end if;
            perform ff__release_spend(b, v_id);
            perform ff__spend_given_back(v_id);
        when 'sweep_budget_breaches' then
            if v_action is null then
                return false;
            elsif v_id is null then
                -- Kept for members that are locked or failed, not for those that run under cancel_pending.
                delete from ff_budget_breach x
                 where x.budget_id = v_budget
                   and not exists (select from ff_execution c
                                    where c.budget_ids @> array[v_budget] and c.terminal_at_ms is null
                                      and ff__covered(v_action, c.state, c.lease_expires_at_ms, v_now));
                return false;
            end if;
            e := ff__try_open(v_id);
            if e.execution_id is null or e.lifecycle_phase = 'terminal'
                  or not ff__covered(v_action, e.state, e.lease_expires_at_ms, e.now_ms)
                  or not exists (select from ff_execution c
                                  where c.execution_id = v_id and v_budget = any (c.budget_ids)) then
                return false;
            end if;
            perform ff__cancel(e, 'override', 'budget_exceeded', 'engine');
    end case;
    return true;
end
$$;
