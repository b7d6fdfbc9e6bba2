-- The state that people see, a pure function of the state vector, and the list of the legal vectors (docs/states.md): NULL
-- for any other. ff_exec_core.public_state is generated from it and the table's CHECK wants it not null, so every write
-- is held to the list for the price of one call. A change here does not reach rows that exist: ff_check_invariants does.
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
    return case p_lifecycle_phase
        when 'runnable' then
            case when p_ownership_state = 'unowned' and p_terminal_outcome = 'none'
                      and p_attempt_state in ('pending_first_attempt', 'pending_retry_attempt', 'pending_replay_attempt',
                                              'attempt_interrupted') then
                case p_eligibility_state
                    when 'eligible_now' then
                        case when p_blocking_reason <> 'waiting_for_worker' then null
                             when p_attempt_state = 'attempt_interrupted' then 'resumable' else 'waiting' end
                    when 'not_eligible_until_time' then
                        case when p_blocking_reason in ('waiting_for_delay', 'waiting_for_retry_backoff',
                                                        'waiting_for_resume_delay') then 'delayed' end
                    when 'blocked_by_dependencies' then
                        case when p_blocking_reason = 'waiting_for_children' then 'waiting_children' end
                    when 'blocked_by_budget' then
                        case when p_blocking_reason = 'waiting_for_budget' then 'rate_limited' end
                    when 'blocked_by_quota' then
                        case when p_blocking_reason = 'waiting_for_quota' then 'rate_limited' end
                    when 'blocked_by_operator' then
                        case when p_blocking_reason = 'paused_by_operator' then 'waiting' end
                end
            end
        when 'active' then
            case when p_eligibility_state = 'not_applicable' and p_terminal_outcome = 'none' then
                case p_ownership_state
                    when 'leased' then
                        case when p_blocking_reason = 'none' and p_attempt_state = 'running_attempt' then 'active' end
                    when 'unowned' then null
                    else case when p_ownership_state in ('lease_expired_reclaimable', 'lease_revoked')
                                   and p_blocking_reason = 'waiting_for_worker'
                                   and p_attempt_state = 'attempt_interrupted' then 'active' end
                end
            end
        when 'terminal' then
            case when p_ownership_state = 'unowned' and p_eligibility_state = 'not_applicable'
                      and p_blocking_reason = 'none'
                      and p_attempt_state = case p_total_attempt_count when 0 then 'none' else 'attempt_terminal' end then
                case when p_terminal_outcome = 'success' then 'completed'
                     when p_terminal_outcome in ('failed', 'cancelled', 'expired', 'skipped') then p_terminal_outcome end
            end
        when 'suspended' then
            case when p_ownership_state = 'unowned' and p_eligibility_state = 'not_applicable'
                      and p_terminal_outcome = 'none' and p_attempt_state = 'attempt_interrupted'
                      and p_blocking_reason in ('waiting_for_signal', 'waiting_for_approval', 'waiting_for_callback',
                                                'waiting_for_tool_result', 'waiting_for_budget', 'paused_by_operator',
                                                'paused_by_policy') then 'suspended' end
    end;
end
$$;
