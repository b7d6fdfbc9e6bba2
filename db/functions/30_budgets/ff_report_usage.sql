-- Locks: the execution, the budget. Replay with the same key: already_applied, nothing written.
create or replace function ff_report_usage(
    p_handle text,
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
    perform ff__fence(ff__decode_handle(p_handle));
    v := ff__spend(p_budget_id, p_deltas, p_dedup_key);
    outcome := v.outcome;
    applied := v.applied;
    dimension := v.dimension;
    current_usage := v.current_usage;
    limit_value := v.limit_value;
    original_outcome := v.original_outcome;
end
$$;

comment on function ff_report_usage(text, text, jsonb, text) is
$$Counts what the work has used up, by dimension: {"tokens": 1200}. Only the holder of the lease may. In a strict budget
nothing is counted if a hard limit would be passed (hard_breach, applied false); reaching it exactly is fine.
soft_breach, and hard_breach in a budget that only warns, are counted. dimension, current_usage and limit_value tell
which limit, the usage before a refusal or after what was applied. A dimension that was not declared is counted without
limits. A repeat with the same p_dedup_key within a day is not counted again; refused reports may be repeated. What is
reported is consumed: nothing gives it back but a reset.

Outcomes: outcome = ok | soft_breach | hard_breach | already_applied
Outcomes: original_outcome = ok | soft_breach | hard_breach
Nullable: dimension, current_usage, limit_value, original_outcome
Errors: invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired, invalid_input, budget_not_found, dedup_key_conflict, budget_overflow$$;
