-- What may be shown of a token: 16 hex digits of its sha256, which say nothing about the MAC.
create or replace function ff__fingerprint(p_token text) returns text
language sql immutable parallel safe
as $$ select left(encode(sha256(convert_to(p_token, 'UTF8')), 'hex'), 16) $$;
