-- Locks: the keystore (its table, against other writers). Replay: already_seeded, nothing written.
create or replace function ff_seed_waitpoint_hmac_secret(
    p_kid text,
    p_secret_hex text default null,
    out outcome text,
    out kid text,
    out same_secret boolean,
    out active boolean
)
language plpgsql volatile security definer
as $$
declare
    v_secret bytea := ff__check_kid('p_kid', p_kid, p_secret_hex);
    v_now bigint;
    k ff_waitpoint_hmac;
begin
    perform ff__lock_keystore();
    v_now := ff__now_ms();
    kid := p_kid;
    -- The key with this id; otherwise the active key, whose secret is compared whatever its id.
    select h.* into k from ff_waitpoint_hmac h where h.kid = p_kid or h.active order by h.kid = p_kid desc limit 1;
    if k.kid <> p_kid and p_secret_hex is not null and k.secret <> v_secret then
        perform ff__raise('hmac_already_seeded', format('the key %s is active', k.kid),
                          jsonb_build_object('kid', p_kid, 'active_kid', k.kid));
    end if;
    if k.kid is not null then
        kid := k.kid;
        outcome := 'already_seeded';
        same_secret := case when p_secret_hex is not null then k.secret is not distinct from v_secret end;
        active := k.active;
        return;
    end if;
    -- Under the lock, a conflict is possible only with an old snapshot; it then raises a serialization failure.
    insert into ff_waitpoint_hmac (kid, secret, active, installed_at_ms) values (p_kid, v_secret, true, v_now)
    on conflict do nothing;
    perform ff__emit_operator('hmac_seeded', v_now, jsonb_build_object('kid', p_kid));
    outcome := 'seeded';
    active := true;
end
$$;

comment on function ff_seed_waitpoint_hmac_secret(text, text) is
$$Installs the first key that signs waitpoint tokens. Without p_secret_hex (64 hexadecimal digits) the server generates
the secret, which is not sent over the network. Safe to call on every start and concurrently: an existing key does not
change. p_kid: the id of a new key. kid: the id of the installed key. same_secret: whether the installed key has the
given secret. Another secret under another id is rejected; use ff_rotate_waitpoint_hmac_secret for it. `pyff migrate`
installs a key.

Outcomes: outcome = seeded | already_seeded
Nullable: same_secret
Errors: invalid_input, invalid_kid, invalid_secret, hmac_already_seeded$$;
-- grant: ff_admin
