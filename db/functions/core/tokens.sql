-- The key that signs new tokens. Errors: hmac_not_initialized.
create or replace function ff__active_key() returns ff_waitpoint_hmac
language plpgsql stable
as $$
declare
    k ff_waitpoint_hmac;
begin
    select h.* into k from ff_waitpoint_hmac h where h.active;
    if not found then
        perform ff__raise('hmac_not_initialized', 'there is no key to sign waitpoint tokens with');
    end if;
    return k;
end
$$;

-- The loggable form of a token: 16 hex digits of its sha256, which reveal nothing about the MAC. Not an SQL function:
-- auto_explain would log its argument.
create or replace function ff__fingerprint(p_token text) returns text
language plpgsql immutable parallel safe
as $$
begin
    return left(encode(sha256(convert_to(p_token, 'UTF8')), 'hex'), 16);
end
$$;

-- Computes the token of a waitpoint of a locked execution again. If its key is expired and the waitpoint open, it is
-- signed with the active key, and an operator event is emitted. NULL if the waitpoint is closed and the secret deleted.
-- Errors: hmac_not_initialized.
create or replace function ff__current_token(e ff_exec, w ff_waitpoint) returns text
language plpgsql volatile
as $$
declare
    v_wire_id text := ff__wire_id(e.partition_key, e.execution_id);
    v_previous text := w.token_kid;
    v_token text;
    k ff_waitpoint_hmac;
begin
    select h.* into k from ff_waitpoint_hmac h where h.kid = w.token_kid;
    if k.secret is not null
       and (k.active or k.expires_at_ms > e.now_ms or w.state not in ('pending', 'active')) then
        return ff__waitpoint_token(k.kid, k.secret, v_wire_id, w.waitpoint_id);
    end if;
    if w.state not in ('pending', 'active') then
        return null;
    end if;
    k := ff__active_key();
    v_token := ff__waitpoint_token(k.kid, k.secret, v_wire_id, w.waitpoint_id);
    update ff_waitpoint x set token_kid = k.kid, token_fingerprint = ff__fingerprint(v_token)
     where x.waitpoint_id = w.waitpoint_id;
    update ff_execution c set last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    e := ff__emit_wait(e, 'operator', 'waitpoint_reminted', null, w.suspension_id, w.waitpoint_id,
                       jsonb_build_object('previous_kid', v_previous, 'kid', k.kid));
    return v_token;
end
$$;

-- The token of a waitpoint: key id, colon, HMAC-SHA256 in hex over key id, execution id and waitpoint id. The key id
-- has no colon and both ids have a fixed form, so the message is unambiguous.
create or replace function ff__waitpoint_token(p_kid text, p_secret bytea, p_wire_id text, p_waitpoint_id uuid)
returns text
language plpgsql stable
as $$
begin
    return p_kid || ':' || encode(hmac(convert_to(p_kid || ':' || p_wire_id || ':' || p_waitpoint_id::text, 'UTF8'),
                                       p_secret, 'sha256'), 'hex');
end
$$;
