-- Locks: the execution. Repeatable.
create or replace function ff_renew(
    p_handle text,
    p_lease_ttl_ms bigint default null,
    out lease_epoch bigint,
    out lease_expires_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    if p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    e := ff__renew(ff__fence_handle(p_handle), p_lease_ttl_ms);
    lease_epoch := e.lease_epoch;
    lease_expires_at_ms := e.lease_expires_at_ms;
end
$$;

comment on function ff_renew(text, bigint) is
$$Keeps a lease: it now ends p_lease_ttl_ms from now (default: the length it was claimed with), but never after the
attempt's timeout or the execution's deadline. May shorten it. A lease that has ended cannot be renewed.

Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
