-- Locks: the execution, after the token was verified without any lock; above READ COMMITTED then the key. Replay with
-- the same signal id, or the same idempotency key within its time: duplicate, nothing written.
create or replace function ff_deliver_signal(
    p_execution_id text,
    p_waitpoint_id uuid,
    p_waitpoint_token text,
    p_signal_name text,
    p_payload bytea default null,
    p_signal_id uuid default null,
    p_signal_category text default 'external',
    p_source_type text default 'external',
    p_source_identity text default '',
    p_correlation_id text default null,
    p_payload_encoding text default null,
    p_idempotency_key text default null,
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
    v_id uuid := ff__execution_uuid(p_execution_id);
    v_max int := ff__engine_limit('max_name_chars');
    e ff_exec;
    w ff_waitpoint;
    g ff_signal;
    r ff_signal_row;
begin
    perform ff__check_signal(p_waitpoint_id, p_signal_name, p_payload, p_source_type, p_dedup_ttl_ms, p_resume_delay_ms,
                             v_max);
    perform ff__check_chars('p_signal_category', p_signal_category, 1, v_max);
    perform ff__check_chars('p_source_type', p_source_type, 1, v_max);
    perform ff__check_chars('p_source_identity', p_source_identity, 0, v_max);
    if p_correlation_id is not null then
        perform ff__check_chars('p_correlation_id', p_correlation_id, 0, v_max);
    end if;
    if p_payload_encoding is not null then
        perform ff__check_text('p_payload_encoding', p_payload_encoding, 0, 64);
    end if;
    if p_idempotency_key is not null then
        perform ff__check_text('p_idempotency_key', p_idempotency_key, 0, 512);
    end if;

    perform ff__verify_token(p_waitpoint_token, p_execution_id, v_id, p_waitpoint_id);
    e := ff__open(v_id);
    select x.* into w from ff_waitpoint x where x.waitpoint_id = p_waitpoint_id and x.execution_id = e.execution_id;
    if not found then
        -- The waitpoint was deleted together with its execution.
        perform ff__raise_bad_token(p_execution_id, p_waitpoint_id);
    end if;
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        -- An old snapshot can show an old key: locking a row that has changed since is a serialization failure.
        perform from ff_waitpoint_hmac h where h.kid = w.token_kid for share;
    end if;
    if w.token_kid <> split_part(p_waitpoint_token, ':', 1)
       or not exists (select from ff_waitpoint_hmac h
                       where h.kid = w.token_kid and (h.active or h.expires_at_ms > e.now_ms)) then
        -- The key expired or changed while the call waited for the execution: verify again.
        perform ff__verify_token(p_waitpoint_token, p_execution_id, v_id, p_waitpoint_id);
    end if;
    g.signal_id := p_signal_id;
    g.signal_name := p_signal_name;
    g.signal_category := p_signal_category;
    g.source_type := p_source_type;
    g.source_identity := p_source_identity;
    g.correlation_id := p_correlation_id;
    g.payload := p_payload;
    g.payload_encoding := p_payload_encoding;
    g.idempotency_key := nullif(p_idempotency_key, '');
    r := ff__accept_signal(e, w, g, p_dedup_ttl_ms, p_resume_delay_ms);
    outcome := r.outcome;
    signal_id := r.signal_id;
    effect := r.effect;
    matched := r.matched;
    resumed := r.resumed;
    public_state := r.public_state;
end
$$;

comment on function ff_deliver_signal(
    text, uuid, text, text, bytea, uuid, text, text, text, text, text, text, bigint, bigint
) is
$$Delivers a signal to a waitpoint. The token of the waitpoint authorizes the call; errors for an invalid token reveal
nothing about what exists. A pending waitpoint keeps the signal for the suspension that will bind it. On an active
waitpoint the signal counts if the condition accepts its name (matched), and the execution resumes once the condition is
satisfied: at once, after p_resume_delay_ms, or after the delay of the suspension's policy. A repeated call is
recognized by p_signal_id, or by p_idempotency_key for p_dedup_ttl_ms.

Outcomes: outcome = accepted | duplicate
Outcomes: effect = buffered_for_pending_waitpoint | appended_to_waitpoint | resume_condition_satisfied
Nullable: matched
Errors: invalid_input, invalid_execution_id, invalid_signal_name, payload_too_large, invalid_source_type
Errors: missing_token, invalid_token, token_expired, signal_conflict, idempotency_conflict, target_not_signalable
Errors: waitpoint_closed, pending_waitpoint_expired, signal_limit_exceeded, corrupt_state$$;
-- grant: ff_signaler, ff_admin

-- Verifies the token of a waitpoint of an execution; takes no lock. Failures reveal nothing about what exists: a wrong
-- token, an unknown waitpoint and another execution get the same error after the same work, and MACs are compared under
-- a random key created for this comparison.
-- Errors: missing_token, invalid_token, token_expired.
create or replace function ff__verify_token(
    p_token text, p_wire_id text, p_execution_id uuid, p_waitpoint_id uuid
) returns void
language plpgsql volatile
as $$
declare
    v_kid text := split_part(p_token, ':', 1);
    v_valid boolean := false;
    v_random bytea;
    k ff_waitpoint_hmac;
begin
    if p_token is null or p_token = '' then
        perform ff__raise('missing_token', 'the call needs the token of the waitpoint');
    end if;
    if length(p_token) <= 129 and p_token ~ '^[A-Za-z0-9._-]{1,64}:[0-9a-f]{64}$' then
        select h.* into k from ff_waitpoint_hmac h where h.kid = v_kid;
        if found and (k.secret is null or (not k.active and k.expires_at_ms <= ff__now_ms())) then
            perform ff__raise('token_expired', format('tokens of the key %s are no longer accepted', v_kid),
                              jsonb_build_object('execution_id', p_wire_id, 'kid', v_kid));
        elsif found then
            v_valid := exists (select from ff_waitpoint w
                                where w.waitpoint_id = p_waitpoint_id and w.execution_id = p_execution_id
                                  and w.token_kid = v_kid);
            v_random := gen_random_bytes(32);
            v_valid := hmac(convert_to(p_token, 'UTF8'), v_random, 'sha256')
                       = hmac(convert_to(ff__waitpoint_token(v_kid, k.secret, lower(p_wire_id), p_waitpoint_id),
                                         'UTF8'),
                              v_random, 'sha256')
                       and v_valid;
        end if;
    end if;
    -- Raise in one place only: the CONTEXT of an error contains its line number.
    if not v_valid then
        perform ff__raise_bad_token(p_wire_id, p_waitpoint_id);
    end if;
end
$$;

-- Raises invalid_token; the error contains only the arguments of the caller.
create or replace function ff__raise_bad_token(p_wire_id text, p_waitpoint_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_token', 'the token does not open this waitpoint',
                      jsonb_build_object('execution_id', p_wire_id, 'waitpoint_id', p_waitpoint_id));
end
$$;
