-- Locks: executions, without waiting. Safe to run concurrently.
create or replace function ff_sweep_expired_leases(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        -- The index is by queue: the queue with the oldest due row comes first.
        select d.execution_id::text
          from (select x.queue_id
                  from ff_queue x
                 cross join lateral (
                       select c.due_at_ms as due_ms from ff_execution c
                        where c.queue_id = x.queue_id and c.due_at_ms <= v_now
                          and c.state = 'leased'
                          and not ff__is_backed_off('sweep_expired_leases', c.execution_id::text)
                        order by c.due_at_ms limit 1) h
                 order by h.due_ms) q
         cross join lateral (
               select c.execution_id from ff_execution c
                where c.queue_id = q.queue_id and c.due_at_ms <= v_now
                  and c.state = 'leased'
                order by c.due_at_ms) d;
    select s.* into processed, errors, more from ff__sweep('sweep_expired_leases', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_expired_leases(int) is
$$Marks expired leases, so that their executions show as reclaimable and idle workers are notified. Consumes no retry:
the next claim reclaims them. Renewed leases are rescheduled to their new end, and not counted. Oldest first, at most
p_limit. A claim on their lane does the same.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
