-- Processes ff_child_work for maintenance, oldest first; with p_parents only the work of these parents and,
-- recursively, of their children that this call cancels or replays. Locks work rows, executions and flows without
-- waiting: locked rows are skipped, and with a locked parent all of its work. A failed row is recorded under
-- drain_sibling_cancels, the calling step, and retried later.
-- Processing may add to the work list; additions are processed in a later pass. At most twenty passes; if more is true,
-- call again.
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
        -- Two statements, so that the work of given parents is found by the index on parents.
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
                v_result := ff__run_child_work(w, p_parents is not null);
                if v_result = 'parent_busy' then
                    v_busy := v_busy || w.parent_id;
                elsif v_result = 'done' then
                    processed := processed + 1;
                    if p_parents is not null and w.child_id is not null then
                        p_parents := p_parents || w.child_id;
                    end if;
                end if;
                if v_failed then
                    perform ff__delete_sweep_errors('drain_sibling_cancels', array['child ' || w.work_id]);
                end if;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                errors := errors + 1;
                perform ff__record_sweep_error('drain_sibling_cancels', 'child ' || w.work_id, sqlstate, sqlerrm);
            end;
        end loop;
        more := processed + errors >= p_limit or v_pass = 20 and processed > v_had;
        exit when more or v_ids = '{}';
        v_after := v_ids[cardinality(v_ids)];
    end loop;
end
$$;

-- Executes and deletes one row of ff_child_work that the caller has locked. Never waits. Returns done; busy if the
-- child or its flow is locked; parent_busy if no work of this parent can run now: the parent is locked, or with
-- p_inline it has too many children for the call that ended it.
create or replace function ff__run_child_work(w ff_child_work, p_inline boolean) returns text
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
        -- Read before the parent's state: if a check is visible, so is its child.
        v_rows := array(select x.work_id from ff_child_work x
                         where x.parent_id = w.parent_id and x.action = 'check' for update skip locked);
        if w.work_id <> all (v_rows) then
            return 'busy'; -- done with an earlier one
        end if;
    end if;
    if w.action = 'replay' then
        v_outcome := coalesce((select c.terminal_outcome from ff_exec_core c where c.execution_id = w.parent_id),
                              'gone');
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
            -- Replay may change the members that depend on it.
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
        -- Locked, or just added to a flow.
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

-- The terminal_outcome of a parent, with its row locked; none if it has not ended; gone if it does not exist; busy if
-- another transaction has locked its row. Never waits. The row of a parent that has not ended is locked and released at
-- once: this proves that no open transaction is ending it, and does not block lease renewal by its worker.
create or replace function ff__lock_parent(p_parent_id uuid) returns text
language plpgsql volatile
as $$
declare
    v_outcome text;
begin
    begin
        perform from ff_execution c where c.execution_id = p_parent_id for no key update skip locked;
        if not found then
            return case when exists (select from ff_execution c where c.execution_id = p_parent_id) then 'busy'
                        else 'gone' end;
        end if;
        select c.terminal_outcome into v_outcome from ff_exec_core c where c.execution_id = p_parent_id;
        if v_outcome is null then
            return 'gone';
        elsif v_outcome = 'none' then
            -- Rolls back the subtransaction, which releases the lock.
            perform ff__raise('execution_not_terminal', 'the parent has not ended');
        end if;
    exception when sqlstate 'WF406' then
        return 'none';
    end;
    return v_outcome;
end
$$;
