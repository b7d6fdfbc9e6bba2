-- Locks: the execution. Repeatable.
create or replace function ff_renew_lease(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_lease_ttl_ms bigint default null,
    out lease_epoch bigint,
    out lease_expires_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_fence ff_fence := ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch,
                                                 p_attempt_id);
begin
    select r.lease_epoch, r.lease_expires_at_ms into ff_renew_lease.lease_epoch, ff_renew_lease.lease_expires_at_ms
      from ff__renew_one(v_fence, p_lease_ttl_ms) r;
end
$$;

comment on function ff_renew_lease(text, int, uuid, bigint, uuid, bigint) is
$$ff_renew with an explicit fence instead of a handle.

Errors: invalid_input, invalid_execution_id, fence_required, partial_fence, execution_not_found, execution_not_active
Errors: stale_lease, lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
