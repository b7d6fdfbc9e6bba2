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

-- ff_renew and ff_renew_lease: as ff__renew, with the error of the fence that does not hold.
create or replace function ff__renew_one(
    p_fence ff_fence, p_lease_ttl_ms bigint, out lease_epoch bigint, out lease_expires_at_ms bigint
)
language plpgsql volatile
as $$
begin
    if p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    lease_expires_at_ms := (ff__renew(array[p_fence], p_lease_ttl_ms, ff__lock_fences(array[p_fence])))[1];
    lease_epoch := p_fence.lease_epoch;
    if lease_expires_at_ms is null then
        perform ff__fence(p_fence);
    end if;
end
$$;

comment on function ff_renew(text, bigint) is
$$Keeps a lease: it now ends p_lease_ttl_ms from now (default: the length it was claimed with), but never after the
attempt's timeout or the execution's deadline. May shorten it. A lease that has ended cannot be renewed.

Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
