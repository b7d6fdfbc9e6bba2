-- Whether a token opens a waitpoint of an execution; takes no lock. Whoever fails learns nothing about what exists: one
-- error for a wrong token, an unknown waitpoint and another execution, the same work done for each, and MACs compared
-- under a key that is made for this comparison alone.
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
                       = hmac(convert_to(ff__waitpoint_token(v_kid, k.secret, lower(p_wire_id), p_waitpoint_id), 'UTF8'),
                              v_random, 'sha256')
                       and v_valid;
        end if;
    end if;
    -- The only place: the CONTEXT of an error names its line.
    if not v_valid then
        perform ff__bad_token(p_wire_id, p_waitpoint_id);
    end if;
end
$$;
