-- Locks: executions, and the flows of those that end, without waiting. Safe to run concurrently.
create or replace function ff_sweep_delayed(
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
                          and c.state between 'delayed' and 'resume_delay_resume'
                          and not ff__is_backed_off('sweep_delayed', c.execution_id::text)
                        order by c.due_at_ms limit 1) h
                 order by h.due_ms) q
         cross join lateral (
               select c.execution_id from ff_execution c
                where c.queue_id = q.queue_id and c.due_at_ms <= v_now
                  and c.state between 'delayed' and 'resume_delay_resume'
                order by c.due_at_ms) d;
    select s.* into processed, errors, more from ff__sweep('sweep_delayed', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_delayed(int) is
$$Makes executions claimable whose delay, retry backoff or resume delay has ended. Oldest first, at most p_limit. A
claim on their lane does the same.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
