-- Locks: the execution. Replay with the same suffix: duplicate, nothing written.
create or replace function ff_deliver_approval_signal(
    p_execution_id text,
    p_lane_id text,
    p_waitpoint_id uuid,
    p_signal_name text,
    p_idempotency_suffix text,
    p_operator_id text default null,
    p_payload bytea default null,
    p_dedup_ttl_ms bigint default 86400000,
    p_resume_delay_ms bigint default null,
    out outcome text,
    out signal_id uuid,
    out effect text,
    out matched boolean,
    out resumed boolean,
    out public_state text
)
language plpgsql volatile security definer
as $$
declare
    v_max int := ff__engine_limit('max_name_chars');
    e ff_exec;
    w ff_waitpoint;
    g ff_signal;
    r ff_signal_row;
begin
    perform ff__execution_uuid(p_execution_id);
    perform ff__check_lane_id(p_lane_id);
    perform ff__check_signal(p_waitpoint_id, p_signal_name, p_payload, null, p_dedup_ttl_ms, p_resume_delay_ms, v_max);
    perform ff__check_chars('p_idempotency_suffix', p_idempotency_suffix, 1, v_max);
    if p_operator_id is not null then
        perform ff__check_chars('p_operator_id', p_operator_id, 0, v_max);
    end if;

    e := ff__lock_execution(p_execution_id);
    if e.lane_id <> p_lane_id then
        perform ff__raise('lane_mismatch', format('execution %s is not on lane %s', p_execution_id, p_lane_id),
                          jsonb_build_object('execution_id', p_execution_id, 'lane_id', p_lane_id));
    end if;
    select x.* into w from ff_waitpoint x where x.waitpoint_id = p_waitpoint_id and x.execution_id = e.execution_id;
    if not found then
        perform ff__raise('waitpoint_not_found',
                          format('execution %s has no waitpoint %s', p_execution_id, p_waitpoint_id),
                          jsonb_build_object('execution_id', p_execution_id, 'waitpoint_id', p_waitpoint_id));
    end if;
    g.signal_name := p_signal_name;
    g.signal_category := 'approval';
    g.source_type := 'operator';
    g.source_identity := coalesce(nullif(p_operator_id, ''), session_user);
    g.payload := p_payload;
    -- Colons in the name are escaped: the first colon after it starts the suffix.
    g.idempotency_key := 'approval:' || replace(replace(p_signal_name, '%', '%25'), ':', '%3A') || ':'
                         || p_idempotency_suffix;
    r := ff__accept_signal(e, w, g, p_dedup_ttl_ms, p_resume_delay_ms);
    if r.outcome = 'accepted' then
        e := ff__emit_wait(e, 'operator', 'approval_delivered', null, null, p_waitpoint_id,
                           jsonb_build_object('signal_name', p_signal_name, 'operator_id', g.source_identity),
                           r.signal_id, 'operator', g.source_identity);
    end if;
    outcome := r.outcome;
    signal_id := r.signal_id;
    effect := r.effect;
    matched := r.matched;
    resumed := r.resumed;
    public_state := r.public_state;
end
$$;

comment on function ff_deliver_approval_signal(text, text, uuid, text, text, text, bytea, bigint, bigint) is
$$ff_deliver_signal by an operator: the role authorizes the call, no token is needed, so it also works when the key of
the token has expired. Each decision is applied once: p_idempotency_suffix distinguishes it from others of the same
name. It does not conflict with keys and ids of token holders, and does not count against max_signals_per_execution. The
source of the signal is p_operator_id, or else the login role.

Outcomes: outcome = accepted | duplicate
Outcomes: effect = buffered_for_pending_waitpoint | appended_to_waitpoint | resume_condition_satisfied
Nullable: matched
Errors: invalid_input, invalid_execution_id, invalid_lane_id, invalid_signal_name, payload_too_large
Errors: execution_not_found, lane_mismatch, waitpoint_not_found, signal_conflict, idempotency_conflict
Errors: target_not_signalable, waitpoint_closed, pending_waitpoint_expired, corrupt_state$$;
-- grant: ff_operator, ff_admin
