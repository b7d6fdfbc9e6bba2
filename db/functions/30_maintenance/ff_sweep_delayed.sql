-- Locks: executions, and the flows of those that end, all without waiting. Safe to run many at once.
create or replace function ff_sweep_delayed(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_delayed', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select c.key, c.due
                  -- The lanes that have the oldest; then the oldest of these.
                  from (select l.lane_id, h.due
                          from ff_lane_registry l
                         cross join lateral (
                               select coalesce(d.lease_check_at_ms, d.delay_until_ms) as due from ff_exec_core d
                                where d.lane_id = l.lane_id
                                  and coalesce(d.lease_check_at_ms, d.delay_until_ms) between b.from_ms and b.now_ms
                                  and (d.ownership_state = 'leased' or d.eligibility_state = 'not_eligible_until_time')
                                  and d.eligibility_state = 'not_eligible_until_time'
                                  and not (b.putting_off and ff__put_off(b.name, d.execution_id::text))
                                  and d.execution_id::text not in (select unnest(b.seen))
                                order by coalesce(d.lease_check_at_ms, d.delay_until_ms) limit 1) h
                         order by h.due limit b.room) l
                 cross join lateral (
                       select d.execution_id::text as key, coalesce(d.lease_check_at_ms, d.delay_until_ms) as due
                         from ff_exec_core d
                        where d.lane_id = l.lane_id
                          and coalesce(d.lease_check_at_ms, d.delay_until_ms) between b.from_ms and b.now_ms
                          and (d.ownership_state = 'leased' or d.eligibility_state = 'not_eligible_until_time')
                          and d.eligibility_state = 'not_eligible_until_time'
                          and not (b.putting_off and ff__put_off(b.name, d.execution_id::text))
                          and d.execution_id::text not in (select unnest(b.seen))
                        order by coalesce(d.lease_check_at_ms, d.delay_until_ms) limit b.room) c
                 order by c.due limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_delayed(int) is
$$Makes executions claimable whose delay, retry backoff or resume delay has ended. Oldest first, at most p_limit. A claim on
their lane does the same.

Errors: invalid_input$$;
