-- Locks: the execution against ff_sweep_terminal_spend, if the budget has release_on_terminal; the budget.
-- Replay with the same key: already_applied, nothing written.
create or replace function ff_record_spend(
    p_budget_id text,
    p_execution_id text,
    p_deltas jsonb,
    p_idempotency_key text,
    out outcome text,
    out applied boolean,
    out dimension text,
    out current_usage bigint,
    out limit_value bigint,
    out original_outcome text
)
language plpgsql volatile security definer
as $$
declare
    v record;
    v_spender uuid := ff__slot_key(p_execution_id);
    v_spends boolean := true;
begin
    if coalesce(p_idempotency_key, '') = '' then
        perform ff__invalid('p_idempotency_key', 'must not be empty');
    end if;
    if p_deltas <> '{}'::jsonb and (select b.release_on_terminal from ff_budget b where b.budget_id = p_budget_id) then
        select c.spends into v_spends from ff_execution c where c.execution_id = v_spender for key share;
        if not v_spends then
            update ff_execution c set spends = true where c.execution_id = v_spender;
        end if;
    end if;
    v := ff__spend(p_budget_id, p_deltas, p_idempotency_key, v_spender, v_spends is null);
    outcome := v.outcome;
    applied := v.applied;
    dimension := v.dimension;
    current_usage := v.current_usage;
    limit_value := v.limit_value;
    original_outcome := v.original_outcome;
end
$$;

comment on function ff_record_spend(text, text, jsonb, text) is
$$ff_report_usage without a lease, recorded by execution: ff_release_budget releases it, and so does the engine when the
execution has ended, if the budget has release_on_terminal. For reservations. The execution need not exist. The key
identifies the spend within the budget: a key already used for another execution's spend is not counted again.

Outcomes: outcome = ok | soft_breach | hard_breach | already_applied
Outcomes: original_outcome = ok | soft_breach | hard_breach
Nullable: dimension, current_usage, limit_value, original_outcome
Errors: invalid_input, invalid_execution_id, budget_not_found, dedup_key_conflict, budget_overflow$$;
-- grant: ff_producer, ff_worker, ff_operator, ff_admin
