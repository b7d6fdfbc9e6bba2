-- Notes the one ending event of a lease, to be said with the operation's next event: `released` with p_reason, or
-- `expired` if p_timer names the timer that ended it or its time had run out unnoticed. A lease that was marked expired
-- or revoked has had its event.
create or replace function ff__end_lease(e ff_exec, p_reason text, p_timer text default null) returns ff_exec
language plpgsql volatile
as $$
begin
    if e.ownership_state = 'leased' then
        if p_timer is null and e.lease_expires_at_ms > e.now_ms then
            e.lease_end := 'released';
            e.lease_end_reason := p_reason;
        else
            e.lease_end := 'expired';
            e.lease_end_reason := coalesce(p_timer, ff__lapse_reason(e));
        end if;
    end if;
    return e;
end
$$;
