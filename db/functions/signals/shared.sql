-- Delivers a signal from an authenticated sender to a locked execution: checks repetition, state and cap, stores the
-- signal and, if it satisfies the suspension, resumes the execution. g contains the arguments of the sender.
-- Operators and token holders have separate ids and keys: neither repeats, or conflicts with, a key of the other. An
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

    -- Checked before the state: a repetition of the signal that resumed the execution is a duplicate too.
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
            -- Not satisfied before: a signal that matches the only leaf satisfies it; other conditions are evaluated as
            -- a whole.
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

-- Checks a text argument: not null, p_min to p_max characters. Errors: invalid_input.
create or replace function ff__check_chars(p_arg text, p_value text, p_min int, p_max int) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif length(p_value) not between p_min and p_max then
        perform ff__invalid(p_arg, format('must have %s to %s characters', p_min, p_max),
                            jsonb_build_object('characters', length(p_value)));
    end if;
end
$$;

-- Checks the arguments of a signal. Errors: invalid_input, invalid_signal_name, payload_too_large, invalid_source_type.
create or replace function ff__check_signal(
    p_waitpoint_id uuid, p_signal_name text, p_payload bytea, p_source_type text, p_dedup_ttl_ms bigint,
    p_resume_delay_ms bigint, p_max_chars int
) returns void
language plpgsql stable
as $$
begin
    if p_waitpoint_id is null then
        perform ff__invalid('p_waitpoint_id', 'must not be null');
    elsif p_signal_name is null then
        perform ff__invalid('p_signal_name', 'must not be null');
    elsif p_signal_name like E'\\_\\_%' or not ff__is_name(p_signal_name, p_max_chars) then
        perform ff__raise('invalid_signal_name', 'not the name of a signal',
                          jsonb_build_object('signal_name', left(p_signal_name, 64)));
    end if;
    perform ff__check_size('max_payload_bytes', 'payload', p_payload);
    if p_source_type in ('engine', 'operator') then
        perform ff__raise('invalid_source_type', format('the source type %s is the engine''s own', p_source_type),
                          jsonb_build_object('source_type', p_source_type));
    elsif p_dedup_ttl_ms is null or p_dedup_ttl_ms not between 0 and 2592000000 then
        perform ff__invalid('p_dedup_ttl_ms', 'must be between 0 and 2592000000',
                            jsonb_build_object('value', p_dedup_ttl_ms));
    elsif p_resume_delay_ms not between 0 and 604800000 then
        perform ff__invalid('p_resume_delay_ms', 'must be between 0 and 604800000',
                            jsonb_build_object('value', p_resume_delay_ms));
    end if;
end
$$;
