-- Executions ended other than by success; the caller has locked them. The attached children of these, their children and so on
-- are cancelled here if they are few (100 rows of work in all) and not locked. The rest is left to maintenance, and all of
-- it with p_defer_ends. A snapshot that is older than the lock may not show all children: maintenance checks again.
create or replace function ff__parents_ended(p_ids uuid[], p_defer_ends boolean) returns void
language plpgsql volatile
as $$
declare
    v_old boolean := current_setting('transaction_isolation') <> 'read committed';
    v_parents uuid[] := array(
        select u.id from unnest(p_ids) u(id)
         -- Not EXISTS: PostgreSQL may hash all of ff_child for it.
         where v_old or (select true from ff_child k where k.parent_id = u.id and not k.detached limit 1));
begin
    if v_parents = '{}' then
        return;
    end if;
    insert into ff_child_work (parent_id, action) select u.id, 'check' from unnest(v_parents) u(id);
    if not p_defer_ends then
        perform ff__drain_children(100, v_parents);
        if v_old then
            insert into ff_child_work (parent_id, action) select u.id, 'check' from unnest(v_parents) u(id);
        end if;
    end if;
end
$$;

-- Works off ff_child_work, oldest first, for maintenance; with p_parents only the work of these parents and, in turn, of
-- their children that were cancelled or replayed here. Locks work rows, executions and flows, without waiting: what is
-- locked is left, and with a locked parent all of its work. A row that fails is noted under drain_sibling_cancels, the step
-- that calls this, and tried again later.
-- What is done may add to the work list; that is done in a later pass. Twenty passes at most; more: call again.
create or replace function ff__drain_children(
    p_limit int, p_parents uuid[] default null, out processed int, out errors int, out more boolean
)
language plpgsql volatile
as $$
declare
    v_failed boolean := exists (select from ff_reconciler_error r
                                 where r.name = 'drain_sibling_cancels' and r.row_key <> '');
    v_now bigint := ff__now_ms();
    v_after bigint := 0;
    v_ids bigint[];
    v_busy uuid[] := '{}'::uuid[];
    v_had int;
    v_result text;
    w ff_child_work;
begin
    processed := 0;
    errors := 0;
    more := false;
    for v_pass in 1..20 loop
        v_had := processed;
        -- Two statements, so that the work of some parents is found by the index on them.
        if p_parents is null then
            v_ids := array(
                select x.work_id from ff_child_work x
                 where x.work_id > v_after and x.parent_id <> all (v_busy)
                   and not (v_failed and ff__is_backed_off('drain_sibling_cancels', 'child ' || x.work_id, v_now))
                 order by x.work_id limit greatest(p_limit - processed - errors, 0));
        else
            v_ids := array(
                select x.work_id from unnest(p_parents) p(id) join ff_child_work x on x.parent_id = p.id
                 where x.work_id > v_after and x.parent_id <> all (v_busy)
                   and not (v_failed and ff__is_backed_off('drain_sibling_cancels', 'child ' || x.work_id, v_now))
                 order by x.work_id limit greatest(p_limit - processed - errors, 0));
        end if;
        for w in
            select x.* from ff_child_work x where x.work_id = any (v_ids) order by x.work_id for update skip locked
        loop
            continue when w.parent_id = any (v_busy);
            begin
                v_result := ff__child_work(w, p_parents is not null);
                if v_result = 'parent_busy' then
                    v_busy := v_busy || w.parent_id;
                elsif v_result = 'done' then
                    processed := processed + 1;
                    if p_parents is not null and w.child_id is not null then
                        p_parents := p_parents || w.child_id;
                    end if;
                end if;
                if v_failed then
                    perform ff__sweep_healed('drain_sibling_cancels', array['child ' || w.work_id]);
                end if;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                errors := errors + 1;
                perform ff__sweep_failed('drain_sibling_cancels', 'child ' || w.work_id, sqlstate, sqlerrm);
            end;
        end loop;
        more := processed + errors >= p_limit or v_pass = 20 and processed > v_had;
        exit when more or v_ids = '{}';
        v_after := v_ids[cardinality(v_ids)];
    end loop;
end
$$;

-- One row of ff_child_work, which the caller has locked: does it and deletes it. Never waits. Returns done; busy if the
-- child or its flow is busy; parent_busy if nothing of this parent can be done now: it is busy, or with p_inline it has too
-- many children for the call that ended it.
create or replace function ff__child_work(w ff_child_work, p_inline boolean) returns text
language plpgsql volatile
as $$
declare
    v_rows bigint[] := array[w.work_id];
    v_outcome text;
    v_flow uuid;
    v_below uuid[];
    e ff_exec;
begin
    if w.action = 'check' then
        -- Read before the parent's state: of a check that is visible the child is visible too.
        v_rows := array(select x.work_id from ff_child_work x
                         where x.parent_id = w.parent_id and x.action = 'check' for update skip locked);
        if w.work_id <> all (v_rows) then
            return 'busy'; -- done with an earlier one
        end if;
    end if;
    if w.action = 'replay' then
        v_outcome := coalesce((select c.terminal_outcome from ff_exec_core c where c.execution_id = w.parent_id), 'gone');
    else
        v_outcome := ff__lock_parent(w.parent_id);
    end if;
    if v_outcome = 'busy' then
        return 'parent_busy';
    elsif w.action = 'check' and v_outcome not in ('none', 'success') then
        if p_inline and (select count(*) from (
                             select from ff_child k join ff_execution c on c.execution_id = k.child_id
                              where k.parent_id = w.parent_id and not k.detached and c.terminal_at_ms is null
                              limit 100) x) = 100 then
            return 'parent_busy';
        end if;
        insert into ff_child_work (parent_id, child_id, action)
        select k.parent_id, k.child_id, 'cancel'
          from ff_child k join ff_execution c on c.execution_id = k.child_id
         where k.parent_id = w.parent_id and not k.detached and c.terminal_at_ms is null
         order by k.created_at_ms, k.child_id;
    elsif w.action = 'cancel' and v_outcome not in ('none', 'success')
          or w.action = 'replay' and v_outcome in ('none', 'success') then
        if w.action = 'replay' then
            -- Those that wait for it may be changed by its replay.
            v_flow := (select c.flow_id from ff_execution c where c.execution_id = w.child_id);
            v_below := array(select d.downstream_eid from ff_edge d
                              where d.flow_id = v_flow and d.upstream_eid = w.child_id);
            if v_flow is not null and not ff__try_flow(v_flow) then
                return 'busy';
            elsif (select count(*) from (select from ff_execution c where c.execution_id = any (v_below)
                                            for no key update skip locked) x) < cardinality(v_below) then
                perform ff__close_flow(v_flow);
                return 'busy';
            end if;
        end if;
        e := ff__try_open(w.child_id, true);
        -- Or it has just been added to a flow.
        if e.execution_id is null and exists (select from ff_execution c where c.execution_id = w.child_id)
           or w.action = 'replay' and e.flow_id is distinct from v_flow then
            if v_flow is not null then
                perform ff__close_flow(v_flow);
            end if;
            return 'busy';
        elsif exists (select from ff_child k where k.child_id = e.execution_id and not k.detached) then
            if w.action = 'cancel' and e.lifecycle_phase <> 'terminal' then
                perform ff__cancel(e, 'override', 'parent_ended', 'engine');
                if e.flow_id is not null and ff__try_flow(e.flow_id) then
                    perform ff__close_flow(e.flow_id);
                end if;
            elsif w.action = 'replay' and ff__replayable(e.execution_id) then
                perform ff__replay(e, 'parent_replayed', 'engine');
            end if;
        end if;
        if v_flow is not null then
            perform ff__close_flow(v_flow);
        end if;
    end if;
    delete from ff_child_work x where x.work_id = any (v_rows);
    return 'done';
end
$$;

-- How a parent has ended: its terminal_outcome, with its row locked; none if it has not ended; gone if it was deleted;
-- busy if another transaction holds its row. Never waits. The row of a parent that has not ended is locked for a moment
-- and released: no transaction is about to end it unseen, and its worker is not kept from renewing the lease.
create or replace function ff__lock_parent(p_parent_id uuid) returns text
language plpgsql volatile
as $$
declare
    v_outcome text;
begin
    begin
        perform from ff_execution c where c.execution_id = p_parent_id for no key update skip locked;
        if not found then
            return case when exists (select from ff_execution c where c.execution_id = p_parent_id) then 'busy' else 'gone' end;
        end if;
        select c.terminal_outcome into v_outcome from ff_exec_core c where c.execution_id = p_parent_id;
        if v_outcome is null then
            return 'gone';
        elsif v_outcome = 'none' then
            -- The subtransaction ends, and the lock with it.
            perform ff__raise('execution_not_terminal', 'the parent has not ended');
        end if;
    exception when sqlstate 'WF406' then
        return 'none';
    end;
    return v_outcome;
end
$$;
