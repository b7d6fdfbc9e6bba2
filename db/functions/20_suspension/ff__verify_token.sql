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
    v_random bytea;
    v_known boolean;
    k ff_waitpoint_hmac;
begin
    if p_token is null or p_token = '' then
        perform ff__raise('missing_token', 'the call needs the token of the waitpoint');
    elsif length(p_token) > 129 or p_token !~ '^[A-Za-z0-9._-]{1,64}:[0-9a-f]{64}$' then
        perform ff__bad_token(p_wire_id, p_waitpoint_id);
    end if;
    select h.* into k from ff_waitpoint_hmac h where h.kid = v_kid;
    if not found then
        perform ff__bad_token(p_wire_id, p_waitpoint_id);
    elsif k.secret is null or (not k.active and k.expires_at_ms <= ff_now_ms()) then
        perform ff__raise('token_expired', format('tokens of the key %s are no longer accepted', v_kid),
                          jsonb_build_object('execution_id', p_wire_id, 'kid', v_kid));
    end if;
    v_known := exists (select from ff_waitpoint w
                        where w.waitpoint_id = p_waitpoint_id and w.execution_id = p_execution_id
                          and w.token_kid = v_kid);
    v_random := gen_random_bytes(32);
    if hmac(convert_to(p_token, 'UTF8'), v_random, 'sha256')
       <> hmac(convert_to(ff__waitpoint_token(v_kid, k.secret, lower(p_wire_id), p_waitpoint_id), 'UTF8'), v_random,
               'sha256')
       or not v_known
    then
        perform ff__bad_token(p_wire_id, p_waitpoint_id);
    end if;
end
$$;
