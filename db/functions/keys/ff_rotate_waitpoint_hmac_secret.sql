-- Locks: the keystore (its table, against other writers). Replay with the key that is active: noop, nothing written.
create or replace function ff_rotate_waitpoint_hmac_secret(
    p_new_kid text,
    p_new_secret_hex text default null,
    p_grace_ms bigint default 86400000,
    out outcome text,
    out previous_kid text,
    out new_kid text,
    out previous_expires_at_ms bigint,
    out gc_count int
)
language plpgsql volatile security definer
as $$
declare
    v_secret bytea := ff__check_kid('p_new_kid', p_new_kid, p_new_secret_hex);
    v_now bigint;
    v_open bigint;
    k ff_waitpoint_hmac;
begin
    if p_grace_ms is null then
        perform ff__invalid('p_grace_ms', 'must not be null');
    elsif p_grace_ms not between 0 and ff__max_time_ms(ff__now_ms()) then
        perform ff__raise('invalid_grace_ms', 'the grace period is negative or ends after the year 9999',
                          jsonb_build_object('grace_ms', p_grace_ms));
    end if;
    perform ff__lock_keystore();
    v_now := ff__now_ms();
    new_kid := p_new_kid;
    gc_count := 0;
    select h.* into k from ff_waitpoint_hmac h where h.kid = p_new_kid;
    if found then
        if not k.active or (p_new_secret_hex is not null and k.secret <> v_secret) then
            perform ff__raise('rotation_conflict',
                              format('the key %s is %s', p_new_kid,
                                     case when k.active then 'active with another secret' else 'retired' end),
                              jsonb_build_object('kid', p_new_kid, 'active', k.active));
        end if;
        outcome := 'noop';
        return;
    end if;

    update ff_waitpoint_hmac h set secret = null, gc_at_ms = v_now
     where not h.active and h.secret is not null and h.expires_at_ms <= v_now;
    get diagnostics gc_count = row_count;
    update ff_waitpoint_hmac h set active = false, expires_at_ms = ff__time_after(v_now, p_grace_ms)
     where h.active returning h.kid, h.expires_at_ms into previous_kid, previous_expires_at_ms;
    -- Under the lock, a conflict is possible only with an old snapshot; it then raises a serialization failure.
    insert into ff_waitpoint_hmac (kid, secret, active, installed_at_ms) values (p_new_kid, v_secret, true, v_now)
    on conflict do nothing;
    outcome := 'rotated';
    perform ff__emit_operator('hmac_rotated', v_now,
                             jsonb_build_object('previous_kid', previous_kid, 'new_kid', new_kid));
    select count(*) into v_open from ff_waitpoint w
     where w.token_kid = previous_kid and w.state in ('pending', 'active');
    if v_open > 0 then
        raise notice '% open waitpoints are signed by key %: their tokens are accepted for another % ms', v_open,
            previous_kid, p_grace_ms;
    end if;
end
$$;

comment on function ff_rotate_waitpoint_hmac_secret(text, text, bigint) is
$$Replaces the active signing key with a new one; also installs a first key. Tokens of the old key are accepted for
another p_grace_ms; 0 rejects them at once. Secrets of keys whose grace period has ended are deleted (gc_count). Without
p_new_secret_hex the server generates the secret. Repeating the call changes nothing. A notice reports how many open
waitpoints have a token of the old key.

Outcomes: outcome = rotated | noop
Nullable: previous_kid, previous_expires_at_ms
Errors: invalid_input, invalid_kid, invalid_secret, invalid_grace_ms, rotation_conflict$$;
-- grant: ff_admin
