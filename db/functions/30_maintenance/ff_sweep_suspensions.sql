-- Locks: executions, and the flows of those that end, all without waiting. Safe to run many at once.
create or replace function ff_sweep_suspensions(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_suspensions', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select s.execution_id::text as key, s.timeout_at_ms as due from ff_suspension s
                 where s.closed_at_ms is null and s.timeout_at_ms between b.from_ms and b.now_ms
                   and not (b.putting_off and ff__put_off(b.name, s.execution_id::text))
                   and s.execution_id::text not in (select unnest(b.seen))
                 order by s.timeout_at_ms limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_suspensions(int) is
$$Applies the timeouts of suspensions that have passed, as ff_expire_suspension does: the execution fails, is cancelled,
expires, resumes with a timeout signal, or is escalated to an operator. Oldest first, at most p_limit.

Errors: invalid_input$$;
