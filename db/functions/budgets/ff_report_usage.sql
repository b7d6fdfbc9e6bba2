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
$$Counts usage of an execution by dimension: {"tokens": 1200}. Requires the lease. In a strict budget nothing is counted
if a hard limit would be passed (hard_breach, applied false); reaching it exactly is allowed. soft_breach, and
hard_breach in warn mode, are counted. dimension, current_usage and limit_value: the limit that was met, and the usage
before a rejected or after an applied report. An undeclared dimension is counted without limits. A repeat with the same
p_dedup_key within a day is not counted again; rejected reports may be repeated. Reported usage is consumed: only a
reset clears it.

Outcomes: outcome = ok | soft_breach | hard_breach | already_applied
Outcomes: original_outcome = ok | soft_breach | hard_breach
Nullable: dimension, current_usage, limit_value, original_outcome
Errors: invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked
Errors: lease_expired, invalid_input, budget_not_found, dedup_key_conflict, budget_overflow$$;
-- grant: ff_worker, ff_admin
