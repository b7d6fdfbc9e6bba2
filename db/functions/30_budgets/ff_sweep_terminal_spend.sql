-- Locks: budgets and executions, without waiting. Safe to run many at once. An execution is looked at again under its
-- lock: one that was replayed keeps what it spends from then on.
create or replace function ff_sweep_terminal_spend(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_terminal_spend', p_limit);
begin
    while b.again loop
        -- Those that have ended with something to give back; those that were not there when it was spent, if they are by
        -- now and have ended; those that were marked and have nothing left. A budget that somebody else holds hides nobody.
        b.keys := array(
            select k.key
              from (select y.budget_id, y.execution_id
                      from (select l.budget_id, c.execution_id
                              from (select x.execution_id from ff_exec_core x
                                     where x.spends and x.eligibility_state = 'not_applicable'
                                       and x.lifecycle_phase = 'terminal'
                                     limit b.room::bigint * 10) c
                              left join lateral (
                                   select z.budget_id from ff_budget_usage_by_exec z
                                     join ff_budget g on g.budget_id = z.budget_id and g.release_on_terminal
                                    where z.execution_id = c.execution_id) l on true
                            union
                            select l.budget_id, l.execution_id
                              from ff_budget_usage_by_exec l
                             where l.unbound
                               -- A scalar, so that no plan joins with all executions.
                               and (select x.lifecycle_phase from ff_exec_core x
                                     where x.execution_id = l.execution_id) = 'terminal') y
                     order by y.budget_id, y.execution_id) o
             cross join lateral (select jsonb_build_array(o.budget_id, o.execution_id)::text) k(key)
              left join lateral (
                   select g.budget_id from ff_budget g where g.budget_id = o.budget_id for update skip locked) h
                     on true
             where h.budget_id is not distinct from o.budget_id
               and not (b.putting_off and ff__put_off(b.name, k.key))
               and k.key not in (select unnest(b.seen))
             limit b.room);
        b.due_ms := array_fill(b.now_ms, array[cardinality(b.keys)]);
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_terminal_spend(int) is
$$Gives back what executions that have ended had spent by ff_record_spend of budgets with release_on_terminal: a dead
worker holds no reservation.

Errors: invalid_input$$;
