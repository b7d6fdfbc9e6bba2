-- Locks: the execution. Replay with the same waitpoint id and key: already_exists, the same token.
create or replace function ff_create_waitpoint(
    p_handle text,
    p_waitpoint_key text default null,
    p_expires_in_ms bigint default 3600000,
    p_waitpoint_id uuid default null,
    out outcome text,
    out waitpoint_id uuid,
    out waitpoint_key text,
    out waitpoint_token text,
    out expires_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_fence ff_fence;
    e ff_exec;
    k ff_waitpoint_hmac;
    w ff_waitpoint;
begin
    if p_waitpoint_key is not null and not ff__is_name(p_waitpoint_key, ff__engine_limit('max_name_chars')) then
        perform ff__raise('invalid_waitpoint_key', 'not the key of a waitpoint',
                          jsonb_build_object('waitpoint_key', left(p_waitpoint_key, 64)));
    elsif p_expires_in_ms is null or p_expires_in_ms not between 1 and 2592000000 then
        perform ff__invalid('p_expires_in_ms', 'must be between 1 and 2592000000',
                            jsonb_build_object('value', p_expires_in_ms));
    end if;
    v_fence := ff__decode_handle(p_handle);
    e := ff__fence(v_fence);
    k := ff__active_key();
    waitpoint_id := coalesce(p_waitpoint_id, ff__mint_id(e.now_ms, e.partition_key));
    waitpoint_key := coalesce(p_waitpoint_key, 'wpk:' || waitpoint_id::text);
    if p_waitpoint_id is not null then
        select x.* into w from ff_waitpoint x where x.waitpoint_id = p_waitpoint_id;
        if found then
            if w.execution_id <> e.execution_id or w.attempt_index <> e.current_attempt_index
               or w.waitpoint_key <> ff_create_waitpoint.waitpoint_key or w.state <> 'pending' then
                perform ff__raise_waitpoint_conflict(e, p_waitpoint_id);
            end if;
            outcome := 'already_exists';
            waitpoint_token := ff__current_token(e, w);
            expires_at_ms := w.expires_at_ms;
            return;
        end if;
    end if;
    if (select c.open_waitpoints from ff_execution c where c.execution_id = e.execution_id)
       >= ff__engine_limit('max_open_waitpoints') then
        perform ff__raise_waitpoint_limit(e);
    end if;
    waitpoint_token := ff__waitpoint_token(k.kid, k.secret, v_fence.wire_id, waitpoint_id);
    expires_at_ms := e.now_ms + p_expires_in_ms;
    outcome := 'created';
    insert into ff_waitpoint as x (
        waitpoint_id, execution_id, created_at_ms, expires_at_ms, attempt_index, state, waitpoint_key, token_kid,
        token_fingerprint)
    values (
        ff_create_waitpoint.waitpoint_id, e.execution_id, e.now_ms, ff_create_waitpoint.expires_at_ms,
        e.current_attempt_index, 'pending', ff_create_waitpoint.waitpoint_key, k.kid, ff__fingerprint(waitpoint_token))
    on conflict on constraint ff_waitpoint_pkey do nothing;
    if not found then
        perform ff__raise_waitpoint_conflict(e, waitpoint_id);
    end if;
    update ff_execution c set open_waitpoints = c.open_waitpoints + 1, last_mutation_at_ms = e.now_ms
     where c.execution_id = e.execution_id;
end
$$;

comment on function ff_create_waitpoint(text, text, bigint, uuid) is
$$Creates a waitpoint before the suspension: its token can be handed out while the work continues, and signals that
arrive are kept for the suspension that binds it ({"use_pending": waitpoint_id}). The waitpoint ends after
p_expires_in_ms or with the attempt. The lease stays. Without p_waitpoint_id every call creates a new one.

Outcomes: outcome = created | already_exists
Nullable: expires_at_ms
Errors: invalid_input, invalid_handle, invalid_waitpoint_key, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired, hmac_not_initialized, waitpoint_conflict, waitpoint_limit_exceeded$$;
-- grant: ff_worker, ff_admin
