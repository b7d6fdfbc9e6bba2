-- The delivery of a signal whose sender was authenticated, to a locked execution: repetition, state, cap; then the signal
-- is stored and, if its suspension is satisfied by it, the execution resumes. g carries what the sender gave.
-- Operators and token holders have ids and keys of their own: neither repeats, or conflicts with, a key of the other. An
-- operator's signal does not count against the cap.
-- Errors: signal_conflict, idempotency_conflict, target_not_signalable, waitpoint_closed, pending_waitpoint_expired,
-- signal_limit_exceeded.
create or replace function ff__accept_signal(
    e ff_exec, w ff_waitpoint, g ff_signal, p_dedup_ttl_ms bigint, p_resume_delay_ms bigint
) returns ff_signal_row
language plpgsql volatile
as $$
declare
    v_detail jsonb := jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'waitpoint_id', w.waitpoint_id);
    v_operator boolean := g.source_type = 'operator';
    v_closed text;
    v_limit int;
    v_satisfied boolean := false;
    r ff_signal_row;
    o ff_signal;
    s ff_suspension;
begin
    g.content_hash := ff__content_hash(g.signal_name, w.waitpoint_id, g.payload);
    if p_dedup_ttl_ms = 0 then
        g.idempotency_key := null;
    end if;
    r.public_state := e.public_state;
    r.resumed := false;

    -- Before any look at the state: a repetition of the very signal that resumed the execution is a duplicate too.
    if g.signal_id is not null then
        select x.* into o from ff_signal x where x.execution_id = e.execution_id and x.signal_id = g.signal_id;
        if found and (o.content_hash <> g.content_hash or (o.source_type = 'operator') <> v_operator) then
            perform ff__raise('signal_conflict', format('another signal %s was delivered', g.signal_id),
                              v_detail || jsonb_build_object('signal_id', g.signal_id));
        end if;
    end if;
    if o.signal_id is null and g.idempotency_key is not null then
        select x.* into o from ff_signal x
         where x.waitpoint_id = w.waitpoint_id and x.idempotency_key = g.idempotency_key and x.dedup_until_ms > e.now_ms
           and (x.source_type = 'operator') = v_operator
         order by x.seq desc limit 1;
        if found and o.content_hash <> g.content_hash then
            perform ff__raise('idempotency_conflict', 'this idempotency key was used for another signal',
                              v_detail || jsonb_build_object('signal_id', o.signal_id));
        end if;
    end if;
    if o.signal_id is not null then
        r.outcome := 'duplicate';
        r.signal_id := o.signal_id;
        r.effect := o.effect;
        r.matched := o.matched;
        return r;
    end if;

    if e.lifecycle_phase = 'terminal' or e.deadline_at_ms <= e.now_ms then
        perform ff__raise('target_not_signalable',
                          format('execution %s %s', ff__wire_id(e.partition_key, e.execution_id),
                                 case e.lifecycle_phase when 'terminal' then 'is ' || e.public_state
                                                        else 'is past its deadline' end),
                          v_detail || jsonb_build_object('public_state', e.public_state));
    end if;
    v_closed := case when w.state in ('closed', 'expired') then w.close_reason
                     when w.state = 'active' and w.expires_at_ms <= e.now_ms then 'deadline_passed' end;
    if v_closed is not null then
        perform ff__raise('waitpoint_closed', format('waitpoint %s is closed: %s', w.waitpoint_id, v_closed),
                          v_detail || jsonb_build_object('close_reason', v_closed));
    elsif w.state = 'pending' and w.expires_at_ms <= e.now_ms then
        perform ff__raise('pending_waitpoint_expired',
                          format('waitpoint %s expired %s ms ago', w.waitpoint_id, e.now_ms - w.expires_at_ms),
                          v_detail || jsonb_build_object('expires_at_ms', w.expires_at_ms));
    end if;
    g.seq := ff__next_signal_no(e.execution_id);
    v_limit := ff__max_signals(e.execution_id);
    if g.seq > v_limit and not v_operator
       and (select count(*) from ff_signal x where x.execution_id = e.execution_id and x.source_type <> 'operator')
           >= v_limit
    then
        perform ff__raise('signal_limit_exceeded',
                          format('execution %s has received as many signals as it may',
                                 ff__wire_id(e.partition_key, e.execution_id)),
                          v_detail || jsonb_build_object('limit', v_limit));
    end if;

    g.execution_id := e.execution_id;
    g.waitpoint_id := w.waitpoint_id;
    g.signal_id := coalesce(g.signal_id, ff__mint_id(e.now_ms, e.partition_key));
    g.accepted_at_ms := e.now_ms;
    g.dedup_until_ms := case when g.idempotency_key is not null then e.now_ms + p_dedup_ttl_ms end;
    if w.state = 'pending' then
        g.effect := 'buffered_for_pending_waitpoint';
    else
        s := ff__open_suspension(e);
        g.suspension_id := s.suspension_id;
        g.matched := ff__accepts(s.condition, w.waitpoint_key, g.signal_name);
        g.effect := 'appended_to_waitpoint';
        if g.matched then
            -- Not satisfied until now: a signal that matches the only leaf satisfies it, all others are weighed together.
            v_satisfied := s.condition ->> 'kind' = 'single'
                or ff__satisfied(s.condition, ff__seen_signals(s.suspension_id)
                       || (g.signal_id, w.waitpoint_key, g.signal_name, g.source_type,
                           g.source_identity)::ff_seen_signal);
        end if;
        if v_satisfied then
            g.effect := 'resume_condition_satisfied';
        end if;
    end if;
    perform ff__add_signal(g);
    e := ff__emit_wait(e, 'signal', 'delivered', null, s.suspension_id, w.waitpoint_id,
                       jsonb_strip_nulls(jsonb_build_object(
                           'signal_name', g.signal_name, 'signal_category', g.signal_category, 'matched', g.matched,
                           'correlation_id', g.correlation_id)),
                       g.signal_id, g.source_type, g.source_identity,
                       case g.effect when 'buffered_for_pending_waitpoint' then 'buffered'
                                     when 'appended_to_waitpoint' then 'appended' else 'satisfied' end);
    if v_satisfied then
        r.public_state := ff__resume(e, s, 'signal',
                                     coalesce(p_resume_delay_ms, (s.policy -> 'resume_delay_ms')::bigint), 'resumed',
                                     p_closer => g.signal_id);
        r.resumed := true;
    else
        if s.suspension_id is not null then
            update ff_suspension x set last_signal_at_ms = e.now_ms where x.suspension_id = s.suspension_id;
        end if;
        update ff_execution c set last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
         where c.execution_id = e.execution_id;
    end if;
    r.outcome := 'accepted';
    r.signal_id := g.signal_id;
    r.effect := g.effect;
    r.matched := g.matched;
    return r;
end
$$;
