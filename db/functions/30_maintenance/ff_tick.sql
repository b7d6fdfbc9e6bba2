-- Locks: the row of each step that it runs, the families it notifies, and what the steps lock; all without waiting, and
-- until the transaction ends. Safe to run many at once: a step that another caller is running, or has just run, is skipped.
create or replace function ff_tick(
    p_limit int default 200, p_only text[] default null, p_force boolean default false, p_max_ms int default 1000
) returns table (
    step text,
    processed int,
    errors int,
    more boolean,
    skipped boolean,
    elapsed_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_start timestamptz := clock_timestamp();
    v_begun timestamptz;
    v_now bigint := ff__now_ms();
    v_runs ff_step_run[] := '{}'::ff_step_run[];
    v_late text[] := '{}'::text[];
    v_unknown text;
    r record;
    s ff_step_run;
begin
    perform ff__check_limit(p_limit, 100000);
    if p_force is null then
        perform ff__invalid('p_force', 'must not be null');
    elsif p_max_ms is null or p_max_ms < 0 then
        perform ff__invalid('p_max_ms', 'must be 0 or more');
    end if;
    select coalesce(x.name, 'null') into v_unknown
      from unnest(p_only) x(name) where not exists (select from ff_reconciler k where k.name = x.name) limit 1;
    if found then
        perform ff__invalid('p_only', 'names no step of maintenance', jsonb_build_object('name', left(v_unknown, 64)));
    end if;

    -- Steps that only have more to do come last: they must not keep the others from their turn.
    for r in
        select k.name, k.last_run_at_ms
          from ff_reconciler k
         cross join lateral (
               select p_force or coalesce(v_now not between k.last_run_at_ms and k.last_run_at_ms + k.interval_ms - 1,
                                          true) as due) d
         where k.enabled and (d.due or k.more) and (p_only is null or k.name = any (p_only))
         order by d.due desc, k.run_order
    loop
        -- One step always runs, however short the time is.
        if cardinality(v_runs) > 0 and clock_timestamp() >= v_start + p_max_ms * interval '1 ms' then
            v_late := v_late || r.name;
            continue;
        end if;
        if not p_force then
            -- Beside the row lock: SKIP LOCKED can still block when the row was updated after the statement began.
            continue when not ff__sweep_guard(r.name);
            perform from ff_reconciler k
              where k.name = r.name and k.enabled and k.last_run_at_ms is not distinct from r.last_run_at_ms
                for update skip locked;
            continue when not found;
        end if;
        v_begun := clock_timestamp();
        begin
            s := ff__run_step(r.name, p_limit);
            if ff__is_backed_off(r.name, '') then
                perform ff__sweep_healed(r.name, array['']);
            end if;
        exception when others then
            -- A transaction that cannot go on is the caller's to repeat; anything else concerns this step alone.
            if left(sqlstate, 2) = '40' and sqlstate <> '40P01' then
                raise;
            end if;
            s := (r.name, 0, 1, false, null)::ff_step_run;
            perform ff__sweep_failed(r.name, '', sqlstate, sqlerrm);
        end;
        s.elapsed_ms := extract(epoch from clock_timestamp() - v_begun) * 1000;
        v_runs := v_runs || s;
        if ff__sweep_guard(r.name) then
            update ff_reconciler k
               set last_run_at_ms = ff__now_ms(), last_processed = s.processed, last_errors = s.errors, more = s.more
             where k.name = (select x.name from ff_reconciler x where x.name = r.name for update skip locked);
        end if;
    end loop;
    perform ff__ring_due_families();

    return query
        select k.name, coalesce(x.processed, 0), coalesce(x.errors, 0), coalesce(x.more, k.name = any (v_late)),
               x.step is null, coalesce(x.elapsed_ms, 0)
          from ff_reconciler k left join unnest(v_runs) x on x.step = k.name
         where p_only is null or k.name = any (p_only)
         order by k.run_order;
end
$$;

comment on function ff_tick(int, text[], boolean, int) is
$$Runs the steps of maintenance that are due, one row each; skipped are those that are not, that are switched off, that
another caller runs, or for which no time was left. Then wakes the subscribers of event families that notify by tick.
p_limit: rows per step. p_only: these steps, named as their functions without ff_. p_force: now, whatever their interval.
p_max_ms: no further step starts after that time. A row with more: call again at once. A row with errors: see
ff_reconciler_error; what failed is tried again later and does not keep the rest from being done.
Call it from pg_cron, pyff maintain, or a worker that found nothing to do. Any number may.

Errors: invalid_input$$;
