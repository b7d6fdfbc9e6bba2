-- The timeout of a suspension has passed, its execution is locked: what was agreed for it happens. Returns the outcome of
-- ff_expire_suspension. Errors: corrupt_state, if the stored behavior is none of those that exist.
create or replace function ff__expire_suspension(e ff_exec, s ff_suspension) returns text
language plpgsql volatile
as $$
declare
    v_reason text := 'suspension_timeout:' || s.timeout_behavior;
    g ff_signal;
    a ff_ending;
begin
    if coalesce(s.timeout_behavior, '')
       not in ('fail', 'cancel', 'expire', 'auto_resume_with_timeout_signal', 'escalate') then
        perform ff__raise('corrupt_state',
                          format('suspension %s of execution %s has an unknown timeout behavior', s.suspension_id,
                                 ff__wire_id(e.partition_key, e.execution_id)),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'suspension_id', s.suspension_id, 'timeout_behavior', s.timeout_behavior));
    elsif s.timeout_behavior = 'auto_resume_with_timeout_signal' then
        g.execution_id := e.execution_id;
        g.signal_id := ff__mint_id(e.now_ms, e.partition_key);
        g.seq := ff__next_signal_no(e.execution_id);
        g.waitpoint_id := s.waitpoint_ids[1];
        g.suspension_id := s.suspension_id;
        g.accepted_at_ms := e.now_ms;
        g.matched := true;
        g.signal_name := 'timeout';
        g.signal_category := 'system';
        g.source_type := 'engine';
        g.source_identity := 'suspension_timeout';
        g.effect := 'appended_to_waitpoint';
        g.content_hash := ff__content_hash(g.signal_name, g.waitpoint_id, null);
        perform ff__add_signal(g);
        perform ff__resume(e, s, 'auto_resume', (s.policy -> 'resume_delay_ms')::bigint, 'timed_out_auto_resume',
                           p_closer => g.signal_id);
        return 'auto_resumed';
    elsif s.timeout_behavior = 'escalate' then
        update ff_suspension x set
            escalated_at_ms = e.now_ms, reason_code = 'waiting_for_operator_review', timeout_at_ms = null
         where x.suspension_id = s.suspension_id;
        update ff_waitpoint w set expires_at_ms = null where w.waitpoint_id = any (s.waitpoint_ids);
        update ff_execution c set
            state = 'suspended_operator', last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms,
            last_event_ord = e.ord
         where c.execution_id = e.execution_id;
        e := ff__emit_wait(e, 'suspension', 'escalated', s.reason_code, s.suspension_id, s.waitpoint_ids[1]);
        e := ff__emit_wait(e, 'operator', 'suspension_escalated', s.reason_code, s.suspension_id, s.waitpoint_ids[1]);
        return 'escalated';
    end if;
    e := ff__emit_wait(e, 'suspension', 'timed_out', s.timeout_behavior, s.suspension_id, s.waitpoint_ids[1]);
    if s.timeout_behavior = 'cancel' then
        a := ff__end_attempt(e, 'expire', 'cancelled', null, null, v_reason, 'cancelled', 'cancelled',
                             p_close_reason => 'timed_out_cancel');
        return ff__terminate(e, a, 'cancelled', v_reason, null, 'system_timeout_policy');
    end if;
    a := ff__end_attempt(e, 'expire', case s.timeout_behavior when 'fail' then 'failure' else 'expired' end, null, null,
                         v_reason, 'timeout', 'timeout', p_close_reason => 'timed_out_' || s.timeout_behavior);
    return ff__terminate(e, a, case s.timeout_behavior when 'fail' then 'failed' else 'expired' end, v_reason, 'timeout');
end
$$;
