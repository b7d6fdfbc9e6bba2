-- Checks a reason to suspend. Errors: invalid_reason_code.
create or replace function ff__check_reason_code(p_reason_code text) returns void
language plpgsql stable
as $$
begin
    if ff__suspended_state(p_reason_code) is null then
        perform ff__raise('invalid_reason_code', 'not a reason to suspend for',
                          jsonb_build_object('reason_code', left(p_reason_code, 64)));
    end if;
end
$$;

-- The state of an execution suspended for a reason; NULL for an unknown reason.
create or replace function ff__suspended_state(p_reason_code text) returns ff_state
language plpgsql immutable parallel safe
as $$
begin
    return case p_reason_code
        when 'waiting_for_signal' then 'suspended_signal'::ff_state
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
