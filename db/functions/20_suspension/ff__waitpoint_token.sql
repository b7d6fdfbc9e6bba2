-- The token of a waitpoint: key id, colon, HMAC-SHA256 in hex over key id, execution id and waitpoint id. The key id has
-- no colon and both ids have a fixed form, so the message is unambiguous.
create or replace function ff__waitpoint_token(p_kid text, p_secret bytea, p_wire_id text, p_waitpoint_id uuid)
returns text
language plpgsql stable
as $$
begin
    return p_kid || ':' || encode(hmac(convert_to(p_kid || ':' || p_wire_id || ':' || p_waitpoint_id::text, 'UTF8'),
                                       p_secret, 'sha256'), 'hex');
end
$$;
