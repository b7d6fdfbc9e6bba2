-- The token of a waitpoint of a locked execution, computed again. It is signed anew with the active key, which an operator
-- event tells, if its key is dead and the waitpoint open. NULL if the waitpoint is closed and the secret gone. Errors: hmac_not_initialized.
create or replace function ff__show_token(e ff_exec, w ff_waitpoint) returns text
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
