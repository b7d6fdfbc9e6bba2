-- Checks the id of a signing key and its secret as hex. Returns the secret, or 32 random bytes if none is given.
-- Errors: invalid_input (NULL kid), invalid_kid, invalid_secret.
create or replace function ff__check_kid(p_arg text, p_kid text, p_secret_hex text) returns bytea
language plpgsql volatile
as $$
begin
    if p_kid is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif length(p_kid) > 64 or p_kid !~ '^[A-Za-z0-9._-]+$' then
        perform ff__raise('invalid_kid', 'the key id is not 1 to 64 letters, digits, dots, underscores or dashes',
                          jsonb_build_object('kid', left(p_kid, 64)));
    elsif p_secret_hex is null then
        return gen_random_bytes(32);
    elsif length(p_secret_hex) <> 64 or p_secret_hex ~ '[^0-9a-fA-F]' then
        perform ff__raise('invalid_secret', 'the secret is not 64 hexadecimal digits',
                          jsonb_build_object('kid', p_kid));
    end if;
    return decode(p_secret_hex, 'hex');
end
$$;

-- Locks the keystore against other writers until the end of the transaction; does not block verification of tokens.
-- Uses a table lock, because any login could hold an advisory lock.
create or replace function ff__lock_keystore() returns void
language plpgsql volatile
as $$
begin
    lock table ff_waitpoint_hmac in share row exclusive mode;
end
$$;
