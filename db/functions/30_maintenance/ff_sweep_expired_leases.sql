-- Locks: executions, all without waiting. Safe to run many at once.
create or replace function ff_sweep_expired_leases(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_expired_leases', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select c.key, c.due,
                       count(*) filter (where c.lapsed) over (order by c.due, c.key) as lapsed
                  -- The lanes that have the oldest; then the oldest of these.
                  from (select l.lane_id, h.due
                          from ff_lane_registry l
                         cross join lateral (
                               select coalesce(d.lease_check_at_ms, d.delay_until_ms) as due from ff_exec_core d
                                where d.lane_id = l.lane_id
                                  and coalesce(d.lease_check_at_ms, d.delay_until_ms) between b.from_ms and b.now_ms
                                  and (d.ownership_state = 'leased' or d.eligibility_state = 'not_eligible_until_time')
                                  and d.ownership_state = 'leased'
                                  and not (b.putting_off and ff__put_off(b.name, d.execution_id::text))
                                  and d.execution_id::text not in (select unnest(b.seen))
                                order by coalesce(d.lease_check_at_ms, d.delay_until_ms) limit 1) h
                         order by h.due limit b.room) l
                 cross join lateral (
                       select d.execution_id::text as key, coalesce(d.lease_check_at_ms, d.delay_until_ms) as due,
                              d.lease_expires_at_ms <= b.now_ms as lapsed
                         from ff_exec_core d
                        where d.lane_id = l.lane_id
                          and coalesce(d.lease_check_at_ms, d.delay_until_ms) between b.from_ms and b.now_ms
                          and (d.ownership_state = 'leased' or d.eligibility_state = 'not_eligible_until_time')
                          and d.ownership_state = 'leased'
                          and not (b.putting_off and ff__put_off(b.name, d.execution_id::text))
                          and d.execution_id::text not in (select unnest(b.seen))
                        order by coalesce(d.lease_check_at_ms, d.delay_until_ms) limit b.room * 5) c
                 order by c.due, c.key limit b.room * 5) x
         where x.lapsed <= b.room;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_expired_leases(int) is
$$Marks leases that ran out, so that their executions show as reclaimable and idle workers are woken. Consumes no retry: the
next claim reclaims them. Leases that were renewed are looked at again when they end, and do not count. Oldest first, at
most p_limit. A claim on their lane does the same.

Errors: invalid_input$$;
