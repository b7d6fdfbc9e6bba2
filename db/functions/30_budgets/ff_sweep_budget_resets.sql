-- Locks: budgets and their breach rows, without waiting. Safe to run many at once.
create or replace function ff_sweep_budget_resets(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_budget_resets', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select jsonb_build_array(g.budget_id)::text as key, g.next_reset_at_ms as due
                  from ff_budget g
                 where g.next_reset_at_ms between b.from_ms and b.now_ms
                   and not (b.putting_off and ff__put_off(b.name, jsonb_build_array(g.budget_id)::text))
                   and jsonb_build_array(g.budget_id)::text not in (select unnest(b.seen))
                 order by g.next_reset_at_ms limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_budget_resets(int) is
$$Starts a new period of each budget whose time has come. The times stay on their grid, however late this runs.

Errors: invalid_input$$;
