-- Gives a lease up, in memory: its one ending event, then the lease columns cleared; lease_epoch stays. The event is
-- `released` with p_reason, or `expired` if p_timer names the timer that ended it or its time had run out unnoticed.
-- A lease that was marked expired or revoked has had its event.
create or replace function ff__drop_lease(e ff_exec_core, p_reason text, p_timer text default null) returns ff_exec_core
language plpgsql volatile
as $$
begin
    if e.ownership_state = 'leased' then
        if p_timer is not null then
            perform ff__emit(e, 'lease', 'expired', p_timer);
        elsif e.lease_expires_at_ms <= e.last_mutation_at_ms then
            perform ff__emit(e, 'lease', 'expired', ff__lapse_reason(e, e.last_mutation_at_ms));
        else
            perform ff__emit(e, 'lease', 'released', p_reason);
        end if;
    end if;
    e.ownership_state := 'unowned';
    e.lease_id := null;
    e.lease_ttl_ms := null;
    e.lease_expires_at_ms := null;
    e.lease_check_at_ms := null;
    e.attempt_timeout_at_ms := null;
    e.worker_id := null;
    e.worker_instance_id := null;
    return e;
end
$$;
