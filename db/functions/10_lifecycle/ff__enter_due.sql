-- What is due on a lane enters the ready index: ended delays, and leases that ran out. At most 200 per call, oldest
-- first, never waiting. A lease that was renewed only gets its next check time (see ff_exec_core_due).
create or replace function ff__enter_due(p_lane_id text) returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms();
    v_id uuid;
    e ff_exec;
begin
    for v_id in
        select c.execution_id from ff_exec_core c
         where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) <= v_now
           and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
         order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 200 for update skip locked
    loop
        e := ff__open(v_id);
        if e.lifecycle_phase = 'runnable' then
            perform ff__requeue(e, null, e.delay_until_ms);
        elsif e.lease_expires_at_ms > e.now_ms then
            update ff_exec_core c set lease_check_at_ms = c.lease_expires_at_ms where c.execution_id = v_id;
        elsif not ff__heal(e) then
            perform ff__mark_expired(e);
        end if;
    end loop;
end
$$;
