-- Moves the end of a lease whose fence was checked, within the attempt's timeout and the execution's deadline. Touches no
-- attempt row and, unless the lease gets shorter than its next check, no indexed column.
create or replace function ff__renew(e ff_exec, p_lease_ttl_ms bigint) returns ff_exec
language plpgsql volatile
as $$
begin
    update ff_exec_core c set
        lease_renewed_at_ms = e.now_ms,
        lease_expires_at_ms = least(e.now_ms + coalesce(p_lease_ttl_ms, c.lease_ttl_ms), c.attempt_timeout_at_ms,
                                    c.deadline_at_ms),
        lease_check_at_ms = least(c.lease_check_at_ms, e.now_ms + coalesce(p_lease_ttl_ms, c.lease_ttl_ms)),
        last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id
    returning c.lease_expires_at_ms into e.lease_expires_at_ms;
    return ff__emit(e, 'lease', 'renewed');
end
$$;
