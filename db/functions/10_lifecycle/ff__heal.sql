-- Whether time has passed the deadline or the attempt timeout of a claimable execution, or its work crashed as often as it
-- may: it is not to be claimed as it stands.
create or replace function ff__overdue(c ff_execution, p_now_ms bigint) returns boolean
language sql immutable parallel safe
as $$
    select coalesce((c).deadline_at_ms <= p_now_ms
                    or (c).state in ('leased', 'lease_expired', 'lease_revoked')
                       and ((c).attempt_timeout_at_ms <= p_now_ms
                            or (c).lease_reclaim_count >= coalesce(((c).policy -> 'max_reclaim_count')::int, 100)), false)
$$;

-- Applies an overdue deadline, attempt timeout or limit of reclaims.
create or replace function ff__heal(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    if not ff__expire_if_due(e) and e.lifecycle_phase = 'active'
       and e.lease_reclaim_count >= ff__max_reclaims(e.execution_id) then
        perform ff__give_up_reclaims(e);
    end if;
end
$$;
