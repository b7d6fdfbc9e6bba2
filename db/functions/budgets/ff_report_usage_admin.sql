-- Locks: the budget. Replay with the same key: already_applied, nothing written.
create or replace function ff_report_usage_admin(
    p_budget_id text,
    p_deltas jsonb,
    p_dedup_key text default null,
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
begin
    v := ff__spend(p_budget_id, p_deltas, p_dedup_key);
    outcome := v.outcome;
    applied := v.applied;
    dimension := v.dimension;
    current_usage := v.current_usage;
    limit_value := v.limit_value;
    original_outcome := v.original_outcome;
end
$$;

comment on function ff_report_usage_admin(text, jsonb, text) is
$$ff_report_usage without a lease: for usage from other sources, such as a provider's bill.

Outcomes: outcome = ok | soft_breach | hard_breach | already_applied
Outcomes: original_outcome = ok | soft_breach | hard_breach
Nullable: dimension, current_usage, limit_value, original_outcome
Errors: invalid_input, budget_not_found, dedup_key_conflict, budget_overflow$$;
-- grant: ff_operator, ff_admin
