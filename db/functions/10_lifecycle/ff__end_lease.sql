-- The one ending event of a lease: `released` with p_reason, or `expired` if p_timer names the timer that ended it or
-- its time had run out unnoticed. A lease that was marked expired or revoked has had its event.
create or replace function ff__end_lease(e ff_exec, p_reason text, p_timer text default null) returns ff_exec
language plpgsql volatile
as $$
begin
    if e.ownership_state <> 'leased' then
        return e;
    elsif p_timer is not null then
        return ff__emit(e, 'lease', 'expired', p_timer);
    elsif e.lease_expires_at_ms <= e.now_ms then
        return ff__emit(e, 'lease', 'expired', ff__lapse_reason(e));
    end if;
    return ff__emit(e, 'lease', 'released', p_reason);
end
$$;
