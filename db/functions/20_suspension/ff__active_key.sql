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
