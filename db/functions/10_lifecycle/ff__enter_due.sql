-- What is due on a lane enters the ready index: ended delays, and leases that ran out. At most 200 of each per call,
-- oldest first, never waiting. A lease that was renewed only gets its next check time (see ff_exec_core_leased).
create or replace function ff__enter_due(p_lane_id text) returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms();
    e ff_exec_core;
begin
    perform from ff_exec_core c
      where c.lane_id = p_lane_id and c.eligibility_state = 'not_eligible_until_time' and c.delay_until_ms <= v_now
      limit 1;
    if found then
        for e in
            select c.* from ff_exec_core c
             where c.lane_id = p_lane_id and c.eligibility_state = 'not_eligible_until_time' and c.delay_until_ms <= v_now
             order by c.delay_until_ms limit 200 for update skip locked
        loop
            perform ff__store(ff__settle(ff__stamp(e)));
        end loop;
    end if;

    perform from ff_exec_core c
      where c.lane_id = p_lane_id and c.ownership_state = 'leased' and c.lease_check_at_ms <= v_now limit 1;
    if found then
        for e in
            select c.* from ff_exec_core c
             where c.lane_id = p_lane_id and c.ownership_state = 'leased' and c.lease_check_at_ms <= v_now
             order by c.lease_check_at_ms limit 200 for update skip locked
        loop
            e := ff__stamp(e);
            if e.lease_expires_at_ms > e.last_mutation_at_ms then
                update ff_exec_core c set lease_check_at_ms = c.lease_expires_at_ms
                 where c.execution_id = e.execution_id;
            elsif not ff__heal(e) then
                perform ff__mark_expired(e);
            end if;
        end loop;
    end if;
end
$$;
