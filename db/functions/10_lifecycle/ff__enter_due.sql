-- What is due on a lane enters the ready index: ended delays through ff__requeue, leases that ran out as such. At most 200
-- of each per call, oldest first, never waiting. A lease that was renewed only gets its next check time (see
-- ff_exec_core_due). What maintenance has failed on and put off is passed over. p_marked: see ff_scan_mark.
create or replace function ff__enter_due(p_lane_id text, p_now_ms bigint, p_marked boolean) returns void
language plpgsql volatile
as $$
declare
    v_from bigint := 0;
    v_ids uuid[];
    v_id uuid;
    v_failed boolean;
    e ff_exec;
begin
    if p_marked then
        v_from := coalesce((select m.from_ms from ff_scan_mark m
                             where m.lane_id = p_lane_id and m.caps_key = '' and m.priority = -1
                             order by m.mark_no desc limit 1), 0);
    end if;
    v_ids := array(
        select c.execution_id from ff_exec_core c
         where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) between v_from and p_now_ms
           and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
         order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 201);
    if cardinality(v_ids) > 200 then
        -- A crowd: each kind gets its share, whatever stands in front of it.
        v_ids := array(
            select c.execution_id from ff_exec_core c
             where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) between v_from and p_now_ms
               and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
               and c.ownership_state = 'leased' and c.lease_expires_at_ms <= p_now_ms
             order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 200)
        || array(
            select c.execution_id from ff_exec_core c
             where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) between v_from and p_now_ms
               and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
               and c.eligibility_state = 'not_eligible_until_time'
             order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 200)
        || array(
            select c.execution_id from ff_exec_core c
             where c.lane_id = p_lane_id and coalesce(c.lease_check_at_ms, c.delay_until_ms) between v_from and p_now_ms
               and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')
               and c.ownership_state = 'leased' and c.lease_expires_at_ms > p_now_ms
             order by coalesce(c.lease_check_at_ms, c.delay_until_ms) limit 1000);
    end if;
    if v_ids = '{}' then
        return;
    end if;
    v_failed := exists (select from ff_reconciler_error);
    for v_id in
        select c.execution_id from unnest(v_ids) with ordinality x(id, n) join ff_exec_core c on c.execution_id = x.id
         order by x.n for update of c skip locked
    loop
        continue when v_failed and (ff__is_backed_off('sweep_expired_leases', v_id::text)
                                    or ff__is_backed_off('sweep_delayed', v_id::text));
        e := ff__open(v_id);
        if e.eligibility_state = 'not_eligible_until_time' and e.delay_until_ms <= e.now_ms then
            perform ff__requeue(e, null, e.delay_until_ms);
        elsif e.ownership_state = 'leased' and e.lease_expires_at_ms > e.now_ms then
            update ff_exec_core c set lease_check_at_ms = c.lease_expires_at_ms where c.execution_id = v_id;
        elsif e.ownership_state = 'leased' then
            perform ff__mark_expired(e);
        end if;
    end loop;
end
$$;
