-- The state of an execution that is suspended for a reason; NULL if that is not a reason.
create or replace function ff__suspended_state(p_reason_code text) returns ff_state
language plpgsql immutable parallel safe
as $$
begin
    return case p_reason_code
        when 'waiting_for_signal' then 'suspended_signal'
        when 'waiting_for_approval' then 'suspended_approval'
        when 'waiting_for_callback' then 'suspended_callback'
        when 'waiting_for_tool_result' then 'suspended_tool_result'
        when 'waiting_for_operator_review' then 'suspended_operator'
        when 'paused_by_policy' then 'suspended_policy'
        when 'paused_by_budget' then 'suspended_budget'
        when 'step_boundary' then 'suspended_signal'
        when 'manual_pause' then 'suspended_operator' end;
end
$$;
