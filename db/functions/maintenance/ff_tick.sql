-- Locks: the row of each step that it runs, the families it notifies, and what the steps lock; all without waiting, and
-- until the transaction ends. Safe to run concurrently: a step that another caller is running, or has just run, is
-- skipped.
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

    -- Steps that run early because they have more to do come last, so that they do not starve the others.
    for r in
        select k.name, k.last_run_at_ms
          from ff_reconciler k
         cross join lateral (
               select p_force or coalesce(v_now not between k.last_run_at_ms and k.last_run_at_ms + k.interval_ms - 1,
                                          true) as due) d
         where k.enabled and (d.due or k.more) and (p_only is null or k.name = any (p_only))
         order by d.due desc, k.run_order
    loop
        -- At least one step runs, even if p_max_ms is over.
        if cardinality(v_runs) > 0 and clock_timestamp() >= v_start + p_max_ms * interval '1 ms' then
            v_late := v_late || r.name;
            continue;
        end if;
        if not p_force then
            -- In addition to the row lock: SKIP LOCKED can still block when the row was updated after the statement
            -- began.
            continue when not ff__try_lock_step(r.name);
            perform from ff_reconciler k
              where k.name = r.name and k.enabled and k.last_run_at_ms is not distinct from r.last_run_at_ms
                for update skip locked;
            continue when not found;
        end if;
        v_begun := clock_timestamp();
        begin
            s := ff__run_step(r.name, p_limit);
            if ff__is_backed_off(r.name, '') then
                perform ff__delete_sweep_errors(r.name, array['']);
            end if;
        exception when others then
            -- A failed transaction has to be retried by the caller; other errors concern this step only.
            if left(sqlstate, 2) = '40' and sqlstate <> '40P01' then
                raise;
            end if;
            s := (r.name, 0, 1, false, null)::ff_step_run;
            perform ff__record_sweep_error(r.name, '', sqlstate, sqlerrm);
        end;
        s.elapsed_ms := extract(epoch from clock_timestamp() - v_begun) * 1000;
        v_runs := v_runs || s;
        if ff__try_lock_step(r.name) then
            update ff_reconciler k
               set last_run_at_ms = ff__now_ms(), last_processed = s.processed, last_errors = s.errors, more = s.more
             where k.name = (select x.name from ff_reconciler x where x.name = r.name for update skip locked);
        end if;
    end loop;
    perform ff__notify_due_families();

    return query
        select k.name, coalesce(x.processed, 0), coalesce(x.errors, 0), coalesce(x.more, k.name = any (v_late)),
               x.step is null, coalesce(x.elapsed_ms, 0)
          from ff_reconciler k left join unnest(v_runs) x on x.step = k.name
         where p_only is null or k.name = any (p_only)
         order by k.run_order;
end
$$;

comment on function ff_tick(int, text[], boolean, int) is
$$Runs the steps of maintenance that are due, one row each; skips steps that are not due, switched off, run by another
caller, or for which no time was left. Then notifies the subscribers of event families that notify by tick.
p_limit: rows per step. p_only: these steps, named as their functions without ff_. p_force: regardless of their
interval. p_max_ms: no further step starts after that time. A row with more: call again at once. A row with errors: see
ff_reconciler_error; failed rows are retried later and do not block the rest.
Call it from pg_cron, pyff maintain, or an idle worker. Concurrent calls are safe.

Errors: invalid_input$$;
-- grant: ff_worker, ff_operator, ff_admin

-- Runs one step of maintenance by its name in ff_reconciler.
create or replace function ff__run_step(p_name text, p_limit int) returns ff_step_run
language plpgsql volatile
as $$
declare
    s record;
begin
    case p_name
        when 'sweep_expired_leases' then s := @extschema@.ff_sweep_expired_leases(p_limit);
        when 'sweep_attempt_timeouts' then s := @extschema@.ff_sweep_attempt_timeouts(p_limit);
        when 'sweep_deadlines' then s := @extschema@.ff_sweep_deadlines(p_limit);
        when 'sweep_delayed' then s := @extschema@.ff_sweep_delayed(p_limit);
        when 'sweep_suspensions' then s := @extschema@.ff_sweep_suspensions(p_limit);
        when 'sweep_waitpoints' then s := @extschema@.ff_sweep_waitpoints(p_limit);
        when 'drain_cancel_backlog' then s := @extschema@.ff_drain_cancel_backlog(p_limit);
        when 'drain_sibling_cancels' then s := @extschema@.ff_drain_sibling_cancels(p_limit);
        when 'dispatch_completions' then s := @extschema@.ff_dispatch_completions(p_limit);
        when 'sweep_claim_grants' then s := @extschema@.ff_sweep_claim_grants(p_limit);
        when 'sweep_admissions' then s := @extschema@.ff_sweep_admissions(p_limit);
        when 'sweep_budget_resets' then s := @extschema@.ff_sweep_budget_resets(p_limit);
        when 'sweep_budget_breaches' then s := @extschema@.ff_sweep_budget_breaches(p_limit);
        when 'sweep_terminal_spend' then s := @extschema@.ff_sweep_terminal_spend(p_limit);
        when 'project_flows' then s := @extschema@.ff_project_flows(p_limit);
        when 'sweep_workers' then s := @extschema@.ff_sweep_workers(p_limit);
        when 'sweep_expired' then s := @extschema@.ff_sweep_expired(p_limit);
        when 'trim_retention' then s := @extschema@.ff_trim_retention(p_limit => p_limit);
        when 'trim_streams' then s := @extschema@.ff_trim_streams(p_limit);
        when 'trim_events' then s := @extschema@.ff_trim_events(p_limit);
        when 'fire_schedules' then s := @extschema@.ff_fire_schedules(p_limit);
    end case;
    return (p_name, s.processed, s.errors, s.more, null)::ff_step_run;
end
$$;

-- Notifies the families that notify by tick and have events since the last notification. Once per tick; returns the
-- number of families notified. A transaction that began early may commit last: its events have greater ids at smaller
-- places in the order, so the greatest id among the last 100 places is used. Settings (planner.sql) prevent a sort of
-- all events, regardless of statistics. Locks a family only to notify it, without waiting.
create or replace function ff__notify_due_families() returns int
language plpgsql volatile
as $$
declare
    v_rung int := 0;
    v_last bigint;
    f ff_event_family;
begin
    for f in select x.* from ff_event_family x where x.notify = 'tick' order by x.family loop
        select max(y.event_id) into v_last
          from (select x.event_id from (
                    (select x.gen, x.ord, x.event_id from ff_event_log x
                      where x.family = f.family order by x.gen desc, x.ord desc, x.event_id desc limit 100)
                    union all
                    -- Ends of leases that share a row with a completion. Filtered after the limit: no index shows
                    -- which completions have one, and there may be none.
                    (select z.gen, z.ord, z.event_id
                       from (select x.gen, x.ord, x.event_id, x.lease_type from ff_event_log x
                              where f.family = 'lease' and x.family = 'completion'
                              order by x.gen desc, x.ord desc, x.event_id desc limit 100) z
                      where z.lease_type is not null)) x
                 order by x.gen desc, x.ord desc, x.event_id desc limit 100) y;
        continue when v_last <= f.notified_event_id or v_last is null;
        -- SKIP LOCKED can still block when the row was updated after the statement began.
        continue when not ff__try_lock_step('ff_event_family ' || f.family);
        perform from ff_event_family x
          where x.family = f.family and x.notify = 'tick' and x.notified_event_id < v_last for update skip locked;
        if found then
            perform ff__notify_family(f.family);
            update ff_event_family x set notified_event_id = v_last where x.family = f.family;
            v_rung := v_rung + 1;
        end if;
    end loop;
    return v_rung;
end
$$;
