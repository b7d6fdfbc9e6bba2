-- A member that was about to wait ends instead: cancelled with its flow, or skipped because what it waits for cannot
-- come. p_ended: its attempt has been ended already. A pause that was just recorded stays on record, its holder may
-- replay it. Returns the public state.
create or replace function ff__end_member(
    e ff_exec, p_verdict text, p_ended boolean, p_lease_reason text default null, p_timer text default null
) returns text
language plpgsql volatile
as $$
declare
    v_outcome text := case p_verdict when 'impossible' then 'skipped' else 'cancelled' end;
    v_reason text := 'dependency_impossible';
    v_by text;
    v_paused ff_exec := e;
begin
    if p_verdict = 'cancelled' then
        select f.cancel_reason, f.cancelled_by into v_reason, v_by from ff_flow_core f where f.flow_id = e.flow_id;
    end if;
    if e.current_attempt_id is not null and not p_ended then
        v_paused.lease_id := null;
        perform ff__end_attempt(v_paused, 'override', 'ended_cancelled', v_outcome, v_reason, v_outcome, 'cancelled');
    end if;
    perform ff__terminate(e, v_outcome, v_reason, null, v_by, p_lease_reason, p_timer);
    return v_outcome;
end
$$;
