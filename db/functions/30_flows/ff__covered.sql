-- Whether the cancellation of a flow covers a member that has not ended: cancel_all every one, cancel_pending all but
-- those under a live lease.
create or replace function ff__covered(
    p_policy text, p_ownership_state text, p_lease_expires_at_ms bigint, p_now_ms bigint
) returns boolean
language sql immutable parallel safe
as $$
    select p_policy = 'cancel_all'
        or p_policy = 'cancel_pending' and not (p_ownership_state = 'leased' and p_lease_expires_at_ms > p_now_ms)
$$;
