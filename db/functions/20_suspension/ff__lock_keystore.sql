-- One writer of the keystore at a time, until the end of the transaction.
create or replace function ff__lock_keystore() returns void
language plpgsql volatile
as $$
begin
    perform pg_advisory_xact_lock(7306926112394277235);
end
$$;
