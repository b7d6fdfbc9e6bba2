-- Closes the suspension of an attempt that continues, with its waitpoints and signals by its policy; an operator's
-- resume always closes the waitpoints. p_closer is the last signal. Returns the number of waitpoints closed.
create or replace function ff__close_suspension(
    e ff_exec, s ff_suspension, p_close_reason text, p_trigger text default null, p_by text default null,
    p_closer uuid default null
) returns int
language plpgsql volatile
as $$
declare
    v_close boolean := p_close_reason = 'operator_resume' or (s.policy -> 'close_waitpoint_on_resume')::boolean;
    v_consume boolean := (s.policy -> 'consume_matched_signals')::boolean;
    v_keep boolean := not v_close and (s.policy -> 'retain_signal_buffer_until_closed')::boolean;
    v_count int;
begin
    update ff_suspension x set
        closed_at_ms = e.now_ms, close_reason = p_close_reason, resume_trigger = p_trigger, resumed_by = p_by,
        outcome = case p_close_reason when 'already_satisfied' then p_close_reason else x.outcome end,
        satisfied_at_ms = case when p_close_reason in ('resumed', 'already_satisfied') then e.now_ms end,
        closer_signal_id = p_closer,
        last_signal_at_ms = case when p_closer is null then x.last_signal_at_ms else e.now_ms end
     where x.suspension_id = s.suspension_id;
    update ff_signal g set
        consumed_by = case when g.matched then s.suspension_id end, discarded = not g.matched
     where g.suspension_id = s.suspension_id and g.consumed_by is null and not g.discarded
       and case when g.matched then v_consume else not v_keep end;
    if v_close then
        update ff_waitpoint w set state = 'closed', closed_at_ms = e.now_ms, close_reason = p_close_reason
         where w.waitpoint_id = any (s.waitpoint_ids);
        get diagnostics v_count = row_count;
        return v_count;
    end if;
    update ff_waitpoint w set
        state = 'pending', suspension_id = null, ordinal = null, expires_at_ms = null, required_signal_names = '{}'
     where w.waitpoint_id = any (s.waitpoint_ids);
    return 0;
end
$$;

-- Ends a pending waitpoint of a locked execution: closed by its worker, or expired. Its buffered signals are discarded.
create or replace function ff__end_pending(e ff_exec, p_waitpoint_id uuid, p_state text, p_reason text) returns void
language plpgsql volatile
as $$
begin
    update ff_waitpoint w set state = p_state, closed_at_ms = e.now_ms, close_reason = p_reason
     where w.waitpoint_id = p_waitpoint_id;
    update ff_signal s set discarded = true
     where s.execution_id = e.execution_id and s.waitpoint_id = p_waitpoint_id
       and s.consumed_by is null and not s.discarded;
    update ff_execution c set
        open_waitpoints = c.open_waitpoints - 1, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
end
$$;

-- Applies the timeout behavior of a suspension whose timeout has passed; its execution is locked. Returns the outcome
-- of ff_expire_suspension. Errors: corrupt_state, if the stored behavior is unknown.
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
    return ff__terminate(e, a, case s.timeout_behavior when 'fail' then 'failed' else 'expired' end, v_reason,
                         'timeout');
end
$$;

-- The open suspension of a locked execution. Errors: corrupt_state, if it is suspended without one.
create or replace function ff__open_suspension(e ff_exec) returns ff_suspension
language plpgsql stable
as $$
declare
    s ff_suspension;
begin
    select x.* into s from ff_suspension x where x.execution_id = e.execution_id and x.closed_at_ms is null;
    if not found then
        perform ff__raise('corrupt_state',
                          format('execution %s is suspended without an open suspension',
                                 ff__wire_id(e.partition_key, e.execution_id)),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id)));
    end if;
    return s;
end
$$;

-- The only exit from a suspension whose attempt continues: closes it by its policy, leaves the attempt unchanged, and
-- makes the execution runnable, at once or after p_delay_ms. Returns the public state.
create or replace function ff__resume(
    e ff_exec, s ff_suspension, p_trigger text, p_delay_ms bigint, p_close_reason text, p_by text default null,
    p_closer uuid default null
) returns text
language plpgsql volatile
as $$
declare
    v_closed int := ff__close_suspension(e, s, p_close_reason, p_trigger, p_by, p_closer);
begin
    e := ff__emit_wait(e, 'suspension', 'resumed', p_trigger, s.suspension_id, s.waitpoint_ids[1],
                       jsonb_strip_nulls(jsonb_build_object('close_reason', p_close_reason,
                                                            'delay_ms', nullif(p_delay_ms, 0), 'resumed_by', p_by)));
    return ff__settle(e, null, null, e.now_ms + nullif(p_delay_ms, 0), 'resume_delay',
                      p_closed_waitpoints => v_closed);
end
$$;
