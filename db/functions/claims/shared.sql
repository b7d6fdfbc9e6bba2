-- Checks the arguments of a claim except the lane, which ff__pick checks. Returns the worker's capabilities, sorted and
-- distinct. Errors: invalid_input, invalid_capabilities.
create or replace function ff__check_claim(
    p_worker_id text, p_worker_instance_id text, p_capabilities text[], p_ttl_arg text, p_ttl_ms bigint,
    p_namespace text
) returns text[]
language plpgsql stable
as $$
begin
    if (octet_length(p_worker_id) between 1 and 256 and octet_length(p_worker_instance_id) between 1 and 256
        and (p_worker_id || p_worker_instance_id) !~ E'[\\x01-\\x1f\\x7f]' and p_ttl_ms between 1 and 86400000
        and p_namespace is null and p_capabilities = '{}') is not true
    then
        perform ff__check_claimant(p_worker_id, p_worker_instance_id, p_ttl_arg, p_ttl_ms, p_namespace);
        return ff__check_capabilities('p_capabilities', p_capabilities);
    end if;
    return p_capabilities;
end
$$;
