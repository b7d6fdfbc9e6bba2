-- What an execution that was suspended for a reason waits for; NULL if that is not a reason. Pure.
create or replace function ff__blocking_reason(p_reason_code text) returns text
language plpgsql immutable parallel safe
as $$
begin
    return case p_reason_code
        when 'waiting_for_signal' then 'waiting_for_signal'
        when 'waiting_for_approval' then 'waiting_for_approval'
        when 'waiting_for_callback' then 'waiting_for_callback'
        when 'waiting_for_tool_result' then 'waiting_for_tool_result'
        when 'waiting_for_operator_review' then 'paused_by_operator'
        when 'paused_by_policy' then 'paused_by_policy'
        when 'paused_by_budget' then 'waiting_for_budget'
        when 'step_boundary' then 'waiting_for_signal'
        when 'manual_pause' then 'paused_by_operator' end;
end
$$;
