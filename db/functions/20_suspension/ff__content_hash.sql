-- What makes two deliveries the same signal: name, waitpoint and payload, length-prefixed; -1 stands for no payload.
create or replace function ff__content_hash(p_name text, p_waitpoint_id uuid, p_payload bytea) returns bytea
language sql immutable parallel safe
as $$
    select sha256(int4send(octet_length(p_name)) || convert_to(p_name, 'UTF8') || uuid_send(p_waitpoint_id)
                  || int4send(coalesce(octet_length(p_payload), -1)) || coalesce(p_payload, ''))
$$;
