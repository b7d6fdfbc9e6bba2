-- One writer of the keystore at a time, until the end of the transaction; those that verify tokens go on. A lock of the
-- table, because an advisory lock could be held by any login.
create or replace function ff__lock_keystore() returns void
language plpgsql volatile
as $$
begin
    lock table ff_waitpoint_hmac in share row exclusive mode;
end
$$;
