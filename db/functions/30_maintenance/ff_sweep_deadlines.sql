-- Locks: executions, and the flows of those that end, all without waiting. Safe to run many at once.
create or replace function ff_sweep_deadlines(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_deadlines', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select c.execution_id::text as key, least(c.deadline_at_ms, c.attempt_timeout_at_ms) as due
                  from ff_exec_core c
                 where (c.deadline_at_ms is not null or c.attempt_timeout_at_ms is not null)
                   and c.lifecycle_phase <> 'terminal'
                   and least(c.deadline_at_ms, c.attempt_timeout_at_ms) between b.from_ms and b.now_ms
                   and c.deadline_at_ms <= b.now_ms
                   and not (b.putting_off and ff__put_off(b.name, c.execution_id::text))
                   and c.execution_id::text not in (select unnest(b.seen))
                 order by least(c.deadline_at_ms, c.attempt_timeout_at_ms) limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_deadlines(int) is
$$Ends executions whose deadline has passed, whatever their state: expired, for the reason execution_deadline. Oldest first,
at most p_limit. A claim that meets such an execution does the same.

Errors: invalid_input$$;
