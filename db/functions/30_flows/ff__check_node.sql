-- What ff_create_execution checks of one node of ff_submit_flow, in its order but for the lane's state and the keys.
-- Errors: as ff__check_submission, and invalid_lane_id.
create or replace function ff__check_node(p_node jsonb, p_namespace text, p_now_ms bigint) returns ff_submission
language plpgsql stable
as $$
begin
    perform ff__check_lane_id(p_node ->> 'lane_id');
    if p_node ? 'required_capabilities'
       and jsonb_path_exists(p_node, '$.required_capabilities[*] ? (@.type() != "string")') then
        perform ff__raise('invalid_capabilities', 'the capabilities are not a list of strings',
                          jsonb_build_object('reason', 'not_a_string'));
    elsif octet_length(p_node ->> 'idempotency_key') > 512 then
        perform ff__invalid('idempotency_key', 'must have at most 512 bytes');
    elsif p_node ->> 'payload_base64' is not null then
        if p_node ->> 'payload' is not null then
            perform ff__invalid('payload_base64', 'and payload cannot both be given');
        elsif p_node ->> 'payload_base64' !~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' then
            perform ff__invalid('payload_base64', 'is not base64');
        end if;
    end if;
    return ff__check_submission(
        p_node ->> 'lane_id', coalesce(p_node ->> 'execution_kind', ''),
        ff__json_int('p_nodes', p_node, 'priority', -2147483648, 2147483647)::int,
        coalesce(nullif(p_node -> 'policy', 'null'), '{}'), coalesce(nullif(p_node -> 'tags', 'null'), '{}'),
        case when jsonb_typeof(p_node -> 'required_capabilities') = 'array'
             then array(select t.value from jsonb_array_elements_text(p_node -> 'required_capabilities') t)
             else '{}' end,
        ff__json_int('p_nodes', p_node, 'delay_until_ms', -9223372036854775808, 9223372036854775807),
        ff__json_int('p_nodes', p_node, 'delay_ms', -9223372036854775808, 9223372036854775807),
        ff__json_int('p_nodes', p_node, 'deadline_at_ms', -9223372036854775808, 9223372036854775807),
        coalesce(p_node ->> 'namespace', p_namespace), p_node ->> 'payload_encoding', coalesce(p_node ->> 'creator', ''),
        p_now_ms);
end
$$;
