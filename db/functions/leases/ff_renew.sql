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
    v_fence ff_fence := ff__decode_handle(p_handle);
begin
    select r.lease_epoch, r.lease_expires_at_ms into ff_renew.lease_epoch, ff_renew.lease_expires_at_ms
      from ff__renew_one(v_fence, p_lease_ttl_ms) r;
end
$$;

comment on function ff_renew(text, bigint) is
$$Renews a lease: it ends p_lease_ttl_ms from now (default: the length it was claimed with), but never after the
attempt's timeout or the execution's deadline. Can shorten the lease. A lease that has ended cannot be renewed.

Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
