-- Locks: breach rows, executions, flows, without waiting. A reset waits for the breach row, so what is cancelled here
-- was cancelled before it. Safe to run many at once.
create or replace function ff_sweep_budget_breaches(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_budget_breaches', p_limit);
    v_over text[] := '{}'::text[];
    v_head text;
    r record;
begin
    while b.again loop
        b.keys := '{}';
        for r in select x.budget_id, x.action from ff_budget_breach x order by x.breached_at_ms loop
            exit when cardinality(b.keys) >= b.room;
            -- Not at all those of a breach that somebody else is at.
            perform from ff_budget_breach x where x.budget_id = r.budget_id for update skip locked;
            continue when not found;
            b.keys := b.keys || array(
                select k.key
                  from ff_exec_core c
                 cross join lateral (select jsonb_build_array(r.budget_id, c.execution_id)::text) k(key)
                 where c.budget_ids @> array[r.budget_id] and c.lifecycle_phase <> 'terminal'
                   and ff__covered(r.action, c.ownership_state, c.lease_expires_at_ms, b.now_ms)
                   and not (b.putting_off and ff__put_off(b.name, k.key))
                   and k.key not in (select unnest(b.seen))
                 limit b.room - cardinality(b.keys));
            v_head := jsonb_build_array(r.budget_id)::text;
            if v_head <> all (v_over) and not (b.putting_off and ff__put_off(b.name, v_head)) then
                v_over := v_over || v_head;
            end if;
        end loop;
        b.due_ms := array_fill(b.now_ms, array[cardinality(b.keys)]);
        b := ff__sweep_batch(b);
    end loop;
    select s.more into more from ff__sweep_close(b) s;
    -- Then the breaches that are over.
    b.keys := v_over;
    b.due_ms := null;
    b := ff__sweep_rows(b);
    processed := b.processed;
    errors := b.errors;
end
$$;

comment on function ff_sweep_budget_breaches(int) is
$$Cancels what is attached to breached budgets that say so: everything, or all that does not run. The reason is
budget_exceeded.

Errors: invalid_input$$;
