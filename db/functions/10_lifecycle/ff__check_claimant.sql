-- The arguments that every claim has. Errors: invalid_input.
create or replace function ff__check_claimant(
    p_worker_id text, p_worker_instance_id text, p_ttl_arg text, p_ttl_ms bigint, p_namespace text default null
) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_worker_id', p_worker_id, 1, 256);
    perform ff__check_text('p_worker_instance_id', p_worker_instance_id, 1, 256);
    perform ff__check_ttl(p_ttl_arg, p_ttl_ms);
    if p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;
end
$$;
