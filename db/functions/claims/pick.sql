-- Picks and locks up to p_limit executions of a lane for a worker; locks only those that it returns. Order: priority,
-- then age, over all queues that match the worker's capabilities; due executions compete in order with ready ones.
-- Skips rows locked by other transactions. Applies overdue deadlines and timeouts to up to 64 rows and skips the other
-- overdue ones. Parks executions denied by their quota policy or budget; skips those whose policy another transaction
-- has locked.
-- p_hold_ms: reserves slots for that long, instead of until the leases are created (ff__admit).
-- A single queue in which nothing is due is read and locked in one statement. Otherwise each round reads one snapshot,
-- and other transactions can take its rows meanwhile. If a round finds too few, the next one follows as long as rounds
-- return executions not seen before: those seen twice and not taken are locked by other transactions.
-- Leaves out executions whose attempts would end while another transaction watches their streams (ff__lock_heads).
-- If none is found, runs due maintenance once (ff__run_due) and looks once more. If still none, requests a notification
-- for the lane; before it does, it has read the due index from the beginning (v_whole), not from start_due_ms.
-- None if the lane is unknown, paused or disabled. Never waits. Errors: invalid_lane_id.
-- fresh, now_ms: arguments of ff__lease. At now_ms, read after the last lock, the flow of no member was cancelled.
create or replace function ff__pick(
    p_lane_id text, p_capabilities text[], p_namespace text, p_limit int, p_hold_ms bigint default null,
    out ids uuid[], out fresh boolean, out now_ms bigint
)
language plpgsql volatile
as $$
declare
    v_state text;
    v_now bigint;
    v_due bigint;
    v_free int[];
    v_starts bigint[];
    v_limited int[];
    v_first boolean := true;
    v_direct boolean;
    v_take int := greatest(p_limit, 4);
    v_heads uuid[];
    v_asking uuid[];
    v_seen uuid[] := '{}'::uuid[];
    v_held uuid[] := '{}'::uuid[];
    v_id uuid;
    v_heals int := 0;
    v_changed boolean;
    v_unblocked boolean := false;
    v_armed boolean;
    v_whole boolean := false;
    v_members boolean := false;
    v_began timestamptz := clock_timestamp();
    v_bound int;
    v_deep boolean := false;
    v_policies text[] := '{}'::text[];
    v_rated text[] := '{}'::text[];
    v_busy text[] := '{}'::text[];
    v_budgets text[] := '{}'::text[];
    f record;
    a record;
begin
    ids := '{}';
    fresh := true;
    select l.state into v_state from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_limit = 0 then
        return;
    elsif v_state is null or v_state not in ('active', 'draining') then
        perform ff__run_due(p_lane_id); -- applies due work of other lanes too
        return;
    end if;
    loop
        v_now := ff__now_ms();
        select coalesce(array_agg(q.queue_id) filter (where not q.limited), '{}'),
               coalesce(array_agg(q.start_rank) filter (where not q.limited), '{}'),
               coalesce(array_agg(q.queue_id) filter (where q.limited), '{}'), min(ff__start_due(q, v_now))
          into v_free, v_starts, v_limited, v_due
          from ff_queue q
         where q.lane_id = p_lane_id and (p_namespace is null or q.namespace = p_namespace)
           and q.required_capabilities <@ p_capabilities;
        v_changed := false;
        v_direct := v_first and v_limited = '{}' and cardinality(v_free) = 1
                    and not exists (select from ff_execution d
                                     where d.queue_id = v_free[1] and d.due_at_ms between v_due and v_now)
                    and not exists (select from ff_execution d where d.ready_in = -v_free[1]);
        if v_first and random() * 250 < p_limit then
            perform ff__move_start(v_free || v_limited);
        end if;
        v_first := false;
        if v_direct then
            f := ff__lock_first(v_free[1], v_starts[1], p_limit, v_now);
        elsif v_limited = '{}' then
            v_heads := ff__heads(v_free, v_starts, v_now, v_take, v_whole);
            f := ff__lock_heads(v_heads, v_free, ids || v_held, p_limit - cardinality(ids), v_now, 64 - v_heals);
        else
            -- A policy or budget that denied admission can have 100,000 waiting rows: scan past them only if nothing
            -- else is claimable. Executions of a locked policy are not parked, so each claim reads them again.
            v_bound := case when v_deep then null when v_busy <> '{}' then 100
                            when v_policies || v_rated || v_budgets <> '{}' then 1000 end;
            v_heads := ff__heads(v_free, v_starts, v_now, v_take, v_whole)
                       || ff__limited_heads(v_limited, v_now, v_take, v_whole, v_policies, v_rated, v_busy, v_budgets,
                                            v_bound);
            -- The block releases row locks on executions whose policy is locked by another transaction.
            begin
                f := ff__lock_heads(v_heads, v_free || v_limited, ids || v_held, p_limit - cardinality(ids), v_now,
                                    64 - v_heals);
                -- Check executions of earlier rounds again: they have no leases yet that would be counted.
                v_asking := array(select u.id
                                    from unnest(ids || f.fit) with ordinality u(id, n)
                                    join ff_execution c on c.execution_id = any (array[u.id])
                                   where c.limited order by u.n);
                a := ff__admit_many(v_asking, p_hold_ms, v_policies, v_rated, v_busy, v_budgets);
                if a.p_busy <> v_busy then
                    perform ff__raise('concurrency_limit_exceeded', 'undoes the block and with it the locks');
                end if;
            exception when sqlstate 'WF210' then
                v_busy := a.p_busy;
                continue;
            end;
            v_policies := a.p_policies;
            v_rated := a.p_rated;
            v_budgets := a.p_budgets;
            if cardinality(a.p_admitted) < cardinality(v_asking) then
                v_changed := true;
                f.fit := array(select u.id from unnest(f.fit) with ordinality u(id, n)
                                where u.id <> all (v_asking) or u.id = any (a.p_admitted) order by u.n);
                ids := array(select u.id from unnest(ids) with ordinality u(id, n)
                              where u.id <> all (v_asking) or u.id = any (a.p_admitted) order by u.n);
            end if;
        end if;
        foreach v_id in array f.overdue loop
            exit when v_heals = 64;
            perform ff__apply_overdue(ff__open(v_id));
            v_heals := v_heals + 1;
            v_changed := true;
        end loop;
        if f.held <> '{}' then
            v_held := v_held || f.held;
            v_changed := true;
        end if;
        ids := ids || f.fit;
        fresh := fresh and f.fresh;
        v_members := v_members or f.members;
        if cardinality(ids) = p_limit then
            now_ms := ff__now_ms();
            exit when not v_members;
            v_held := v_held || ids;
            ids := ff__still_claimable(ids);
            exit when cardinality(ids) = p_limit;
            continue;
        end if;
        continue when v_changed or v_direct;
        if cardinality(v_heads) >= v_take then
            -- Too few because other transactions lock some, not because there are no more: read further.
            v_take := 4 * cardinality(v_heads);
        elsif v_bound is not null and ids = '{}' and ff__contains_all(v_seen, v_heads) then
            v_deep := true;
        elsif ff__contains_all(v_seen, v_heads) then
            exit when ids <> '{}' or v_unblocked;
            v_armed := (select l.wake_armed from ff_lane_registry l where l.lane_id = p_lane_id);
            v_unblocked := true;
            v_whole := not v_armed;
            exit when not ff__run_due(p_lane_id) and not v_whole;
            v_seen := '{}';
        end if;
        v_seen := v_seen || v_heads;
    end loop;
    if cardinality(ids) < p_limit then
        now_ms := ff__now_ms();
        if v_members then
            ids := ff__still_claimable(ids);
        end if;
    end if;
    if ids = '{}' and (v_armed is not true or clock_timestamp() - v_began > interval '2 ms') then
        -- An empty claim takes 0.3 ms, and more than 2 ms where it reads many dead index entries.
        perform ff__move_start(v_free || v_limited);
    end if;
    if ids = '{}' and v_armed is not true then
        perform ff__request_notify(p_lane_id);
    end if;
end
$$;

-- As p_of <@ p_in, but not quadratic: both can have thousands of elements.
create or replace function ff__contains_all(p_in uuid[], p_of uuid[]) returns boolean
language plpgsql stable
as $$
begin
    return not exists (select from unnest(p_of) x(id) where x.id not in (select y.id from unnest(p_in) y(id)));
end
$$;

-- Returns the locked executions whose flow can still be claimed from: it may have been cancelled since they were read.
create or replace function ff__still_claimable(p_ids uuid[]) returns uuid[]
language plpgsql volatile
as $$
begin
    return array(select u.id
                   from unnest(p_ids) with ordinality u(id, n)
                   join ff_execution c on c.execution_id = any (array[u.id])
                  where c.flow_id is null
                     or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true)
                  order by u.n);
end
$$;

-- Applies an overdue deadline, attempt timeout or limit of reclaims.
create or replace function ff__apply_overdue(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    if not ff__expire_if_due(e) and e.lifecycle_phase = 'active'
       and e.lease_reclaim_count >= ff__max_reclaims(e.execution_id) then
        perform ff__fail_exhausted_reclaims(e);
    end if;
end
$$;

-- Called when a claim found nothing: the next execution that becomes ready on this lane sends a notification
-- (ff__notify_lane). Never waits for the lane row.
create or replace function ff__request_notify(p_lane_id text) returns void
language plpgsql volatile
as $$
begin
    update ff_lane_registry l set wake_armed = true
     where l.lane_id = (select x.lane_id from ff_lane_registry x
                         where x.lane_id = p_lane_id and not x.wake_armed for update skip locked);
end
$$;
