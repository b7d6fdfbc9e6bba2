-- Whether a state vector is one of the legal rows (docs/states.md). The CHECK of ff_exec_core calls it on every write;
-- a change here does not look at rows that exist, ff_check_invariants does.
create or replace function ff__legal_vector(
    p_lifecycle_phase text,
    p_ownership_state text,
    p_eligibility_state text,
    p_blocking_reason text,
    p_terminal_outcome text,
    p_attempt_state text,
    p_total_attempt_count int
) returns boolean
language plpgsql immutable parallel safe
as $$
begin
    return case p_lifecycle_phase
        when 'runnable' then
            p_ownership_state = 'unowned' and p_terminal_outcome = 'none'
            and p_attempt_state in ('pending_first_attempt', 'pending_retry_attempt', 'pending_replay_attempt',
                                    'attempt_interrupted')
            and case p_eligibility_state
                    when 'eligible_now' then p_blocking_reason = 'waiting_for_worker'
                    when 'not_eligible_until_time' then
                        p_blocking_reason in ('waiting_for_delay', 'waiting_for_retry_backoff',
                                              'waiting_for_resume_delay')
                    when 'blocked_by_dependencies' then p_blocking_reason = 'waiting_for_children'
                    when 'blocked_by_budget' then p_blocking_reason = 'waiting_for_budget'
                    when 'blocked_by_quota' then p_blocking_reason = 'waiting_for_quota'
                    when 'blocked_by_operator' then p_blocking_reason = 'paused_by_operator'
                    else false
                end
        when 'active' then
            p_eligibility_state = 'not_applicable' and p_terminal_outcome = 'none'
            and case p_ownership_state
                    when 'leased' then p_blocking_reason = 'none' and p_attempt_state = 'running_attempt'
                    when 'lease_expired_reclaimable' then
                        p_blocking_reason = 'waiting_for_worker' and p_attempt_state = 'attempt_interrupted'
                    when 'lease_revoked' then
                        p_blocking_reason = 'waiting_for_worker' and p_attempt_state = 'attempt_interrupted'
                    else false
                end
        when 'terminal' then
            p_ownership_state = 'unowned' and p_eligibility_state = 'not_applicable' and p_blocking_reason = 'none'
            and p_terminal_outcome in ('success', 'failed', 'cancelled', 'expired', 'skipped')
            and p_attempt_state = case p_total_attempt_count when 0 then 'none' else 'attempt_terminal' end
        when 'suspended' then
            p_ownership_state = 'unowned' and p_eligibility_state = 'not_applicable' and p_terminal_outcome = 'none'
            and p_attempt_state = 'attempt_interrupted'
            and p_blocking_reason in ('waiting_for_signal', 'waiting_for_approval', 'waiting_for_callback',
                                      'waiting_for_tool_result', 'waiting_for_budget', 'paused_by_operator',
                                      'paused_by_policy')
        else false
    end;
end
$$;
