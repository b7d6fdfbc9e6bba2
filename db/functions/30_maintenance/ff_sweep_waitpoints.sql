-- Locks: executions, all without waiting. Safe to run many at once.
create or replace function ff_sweep_waitpoints(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_waitpoints', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select w.waitpoint_id::text as key, w.expires_at_ms as due from ff_waitpoint w
                 where w.state = 'pending' and w.expires_at_ms between b.from_ms and b.now_ms
                   and not (b.putting_off and ff__put_off(b.name, w.waitpoint_id::text))
                   and w.waitpoint_id::text not in (select unnest(b.seen))
                 order by w.expires_at_ms limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_waitpoints(int) is
$$Ends pending waitpoints whose time is over and that no suspension has bound. Oldest first, at most p_limit.

Errors: invalid_input$$;
