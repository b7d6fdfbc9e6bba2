-- The state that people see, a pure function of the state vector, and the list of the legal vectors (docs/states.md): NULL
-- for any other. ff_exec_core.public_state is generated from it and the table's CHECK wants it not null, so every write
-- is held to the list. One look-up in a constant, because it runs on every write of the hot row. An execution that ended
-- unclaimed has attempt_state none. A change here does not reach rows that exist: ff_check_invariants does.
create or replace function ff__public_state(
    p_lifecycle_phase text,
    p_ownership_state text,
    p_eligibility_state text,
    p_blocking_reason text,
    p_terminal_outcome text,
    p_attempt_state text,
    p_total_attempt_count int
) returns text
language plpgsql immutable parallel safe
as $$
begin
    return jsonb '{
        "runnable unowned eligible_now waiting_for_worker none pending_first_attempt": "waiting",
        "runnable unowned eligible_now waiting_for_worker none pending_retry_attempt": "waiting",
        "runnable unowned eligible_now waiting_for_worker none pending_replay_attempt": "waiting",
        "runnable unowned eligible_now waiting_for_worker none attempt_interrupted": "resumable",
        "runnable unowned not_eligible_until_time waiting_for_delay none pending_first_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_delay none pending_retry_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_delay none pending_replay_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_delay none attempt_interrupted": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_retry_backoff none pending_first_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_retry_backoff none pending_retry_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_retry_backoff none pending_replay_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_retry_backoff none attempt_interrupted": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_resume_delay none pending_first_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_resume_delay none pending_retry_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_resume_delay none pending_replay_attempt": "delayed",
        "runnable unowned not_eligible_until_time waiting_for_resume_delay none attempt_interrupted": "delayed",
        "runnable unowned blocked_by_dependencies waiting_for_children none pending_first_attempt": "waiting_children",
        "runnable unowned blocked_by_dependencies waiting_for_children none pending_retry_attempt": "waiting_children",
        "runnable unowned blocked_by_dependencies waiting_for_children none pending_replay_attempt": "waiting_children",
        "runnable unowned blocked_by_dependencies waiting_for_children none attempt_interrupted": "waiting_children",
        "runnable unowned blocked_by_budget waiting_for_budget none pending_first_attempt": "rate_limited",
        "runnable unowned blocked_by_budget waiting_for_budget none pending_retry_attempt": "rate_limited",
        "runnable unowned blocked_by_budget waiting_for_budget none pending_replay_attempt": "rate_limited",
        "runnable unowned blocked_by_budget waiting_for_budget none attempt_interrupted": "rate_limited",
        "runnable unowned blocked_by_quota waiting_for_quota none pending_first_attempt": "rate_limited",
        "runnable unowned blocked_by_quota waiting_for_quota none pending_retry_attempt": "rate_limited",
        "runnable unowned blocked_by_quota waiting_for_quota none pending_replay_attempt": "rate_limited",
        "runnable unowned blocked_by_quota waiting_for_quota none attempt_interrupted": "rate_limited",
        "runnable unowned blocked_by_operator paused_by_operator none pending_first_attempt": "waiting",
        "runnable unowned blocked_by_operator paused_by_operator none pending_retry_attempt": "waiting",
        "runnable unowned blocked_by_operator paused_by_operator none pending_replay_attempt": "waiting",
        "runnable unowned blocked_by_operator paused_by_operator none attempt_interrupted": "waiting",
        "active leased not_applicable none none running_attempt": "active",
        "active lease_expired_reclaimable not_applicable waiting_for_worker none attempt_interrupted": "active",
        "active lease_revoked not_applicable waiting_for_worker none attempt_interrupted": "active",
        "suspended unowned not_applicable waiting_for_signal none attempt_interrupted": "suspended",
        "suspended unowned not_applicable waiting_for_approval none attempt_interrupted": "suspended",
        "suspended unowned not_applicable waiting_for_callback none attempt_interrupted": "suspended",
        "suspended unowned not_applicable waiting_for_tool_result none attempt_interrupted": "suspended",
        "suspended unowned not_applicable waiting_for_budget none attempt_interrupted": "suspended",
        "suspended unowned not_applicable paused_by_operator none attempt_interrupted": "suspended",
        "suspended unowned not_applicable paused_by_policy none attempt_interrupted": "suspended",
        "terminal unowned not_applicable none success attempt_terminal": "completed",
        "terminal unowned not_applicable none failed attempt_terminal": "failed",
        "terminal unowned not_applicable none cancelled attempt_terminal": "cancelled",
        "terminal unowned not_applicable none expired attempt_terminal": "expired",
        "terminal unowned not_applicable none skipped attempt_terminal": "skipped",
        "terminal unowned not_applicable none success none unclaimed": "completed",
        "terminal unowned not_applicable none failed none unclaimed": "failed",
        "terminal unowned not_applicable none cancelled none unclaimed": "cancelled",
        "terminal unowned not_applicable none expired none unclaimed": "expired",
        "terminal unowned not_applicable none skipped none unclaimed": "skipped"
    }' ->> concat(p_lifecycle_phase, ' ', p_ownership_state, ' ', p_eligibility_state, ' ', p_blocking_reason, ' ',
                   p_terminal_outcome, ' ', p_attempt_state,
                   case when p_lifecycle_phase = 'terminal' and p_total_attempt_count = 0 then ' unclaimed' end);
end
$$;
