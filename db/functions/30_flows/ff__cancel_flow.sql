-- Cancels a flow, or does so more strongly: its state and its events. Touches no member; ff__owe_members is to follow.
-- Returns cancelled | escalated | already_terminal (nothing changed). The caller holds the flow after this. Errors:
-- invalid_input, flow_not_found.
create or replace function ff__cancel_flow(p_flow_id uuid, p_policy text, p_reason text, p_cancelled_by text)
returns text
language plpgsql volatile
as $$
declare
    v_now bigint;
    v_outcome text;
    f ff_flow_core;
    v_rank jsonb := jsonb '{"cancel_flow_only": 1, "cancel_pending": 2, "cancel_all": 3}';
begin
    if p_policy is null or p_policy not in ('cancel_all', 'cancel_pending', 'cancel_flow_only') then
        perform ff__invalid('p_policy', 'must be cancel_all, cancel_pending or cancel_flow_only');
    end if;
    perform ff__check_text('p_reason', p_reason, 0, 4096);
    perform ff__check_text('p_cancelled_by', p_cancelled_by, 0, 256);
    f := ff__lock_flow(p_flow_id);
    if f.public_flow_state in ('completed', 'failed')
       or f.public_flow_state = 'cancelled'
          and (v_rank -> p_policy)::int <= (v_rank -> f.cancellation_policy)::int then
        return 'already_terminal';
    end if;
    v_now := ff__now_ms();
    v_outcome := case f.public_flow_state when 'cancelled' then 'escalated' else 'cancelled' end;
    update ff_flow_core x
       set public_flow_state = 'cancelled', cancellation_policy = p_policy, cancel_reason = p_reason,
           cancelled_by = p_cancelled_by, terminal_at_ms = v_now, unsuccessful = true, forced_acks = 0, last_mutation_at_ms = v_now
     where x.flow_id = p_flow_id;
    if p_policy = 'cancel_flow_only' and f.public_flow_state = 'building' then
        -- It never started, and now its members run on as they are.
        perform from (select c.execution_id from ff_exec_core c where c.flow_id = p_flow_id
                       order by c.execution_id for update) x;
        update ff_exec_core c set flow_stopped = false where c.flow_id = p_flow_id;
        perform ff__wake_members(p_flow_id);
    end if;
    perform ff__emit_flow(p_flow_id, 'cancel_requested', v_now, p_reason,
                          jsonb_build_object('cancellation_policy', p_policy, 'cancelled_by', p_cancelled_by,
                                             'escalated', v_outcome = 'escalated'));
    perform ff__emit_flow(p_flow_id, 'flow_cancel_requested', v_now, p_reason,
                          jsonb_build_object('cancellation_policy', p_policy, 'cancelled_by', p_cancelled_by), 'operator');
    return v_outcome;
end
$$;
