-- What may be shown of a token: 16 hex digits of its sha256, which say nothing about the MAC. Not an SQL function:
-- auto_explain would log its argument.
create or replace function ff__fingerprint(p_token text) returns text
language plpgsql immutable parallel safe
as $$
begin
    return left(encode(sha256(convert_to(p_token, 'UTF8')), 'hex'), 16);
end
$$;
