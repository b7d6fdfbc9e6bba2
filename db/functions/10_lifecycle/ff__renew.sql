-- Moves the end of a lease, within the attempt's timeout and the execution's deadline. Touches no attempt row and,
-- unless the lease gets shorter than its next check, no indexed column.
create or replace function ff__renew(p_fence ff_fence, p_lease_ttl_ms bigint) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec;
begin
    if p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    e := ff__fence(p_fence);
    e.lease_expires_at_ms := least(e.now_ms + coalesce(p_lease_ttl_ms, e.lease_ttl_ms), e.attempt_timeout_at_ms,
                                   e.deadline_at_ms);
    update ff_exec_core c set
        lease_renewed_at_ms = e.now_ms, lease_expires_at_ms = e.lease_expires_at_ms,
        lease_check_at_ms = least(c.lease_check_at_ms, e.lease_expires_at_ms), last_mutation_at_ms = e.now_ms,
        last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    return ff__emit(e, 'lease', 'renewed');
end
$$;
