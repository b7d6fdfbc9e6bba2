-- The state that people see: a pure function of the state vector, written down once. ff_exec_core.public_state is
-- generated from it, so a change here does not reach rows that exist.
create or replace function ff__public_state(
    p_lifecycle_phase text, p_eligibility_state text, p_terminal_outcome text, p_attempt_state text
) returns text
language plpgsql immutable parallel safe
as $$
begin
    return case p_lifecycle_phase
        when 'terminal' then case p_terminal_outcome when 'success' then 'completed' else p_terminal_outcome end
        when 'runnable' then
            case p_eligibility_state
                when 'eligible_now' then
                    case p_attempt_state when 'attempt_interrupted' then 'resumable' else 'waiting' end
                when 'not_eligible_until_time' then 'delayed'
                when 'blocked_by_dependencies' then 'waiting_children'
                when 'blocked_by_budget' then 'rate_limited'
                when 'blocked_by_quota' then 'rate_limited'
                else 'waiting'
            end
        else p_lifecycle_phase  -- active, suspended
    end;
end
$$;
