-- What makes two requests to create an execution the same. Fields are length-prefixed; -1 stands for NULL.
create or replace function ff__request_hash(
    p_lane_id text, p_execution_kind text, p_payload bytea, p_payload_encoding text, p_flow_id uuid
) returns bytea
language sql stable parallel safe
as $$
    select sha256(
        int4send(octet_length(p_lane_id)) || convert_to(p_lane_id, 'UTF8')
        || int4send(octet_length(p_execution_kind)) || convert_to(p_execution_kind, 'UTF8')
        || int4send(coalesce(octet_length(p_payload), -1)) || coalesce(p_payload, '')
        || int4send(coalesce(octet_length(p_payload_encoding), -1))
        || coalesce(convert_to(p_payload_encoding, 'UTF8'), '')
        || coalesce(uuid_send(p_flow_id), ''))
$$;
