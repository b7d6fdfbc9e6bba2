-- The deletions of ff_trim_retention (p_keys: x and the id of an execution, f and that of a flow), re-checked under
-- their locks; locked rows are skipped. p_keep_ms: retention after success, and after other ends. Returns the number
-- deleted; a flow counts as one.
create or replace function ff__trim_rows(p_keys text[], p_now_ms bigint, p_keep_ms bigint[]) returns int
language plpgsql volatile
as $$
declare
    -- False: ff_trim_streams is running and may hold frames.
    v_frames boolean := pg_try_advisory_xact_lock_shared(hashtextextended('ff_stream_frame ' || current_schema(), 0));
    v_ids uuid[];
    v_members uuid[];
    v_flow uuid;
    v_done int;
begin
    v_ids := ff__trimmable(array(
        select c.execution_id
          from unnest(p_keys) x(key)
          join ff_execution c on c.execution_id = case when left(x.key, 1) = 'x' then substr(x.key, 2)::uuid end
               -- CASE, so that no plan reads all ended executions.
               and case when c.terminal_at_ms is not null and c.flow_id is null and not c.spends
                        then c.terminal_at_ms + ff__retention_ms(c.retention_ms, c.state, p_keep_ms[1],
                                                                 p_keep_ms[2]) <= p_now_ms end
               and (v_frames or not exists (select from ff_stream_frame f where f.execution_id = c.execution_id))
           for update of c skip locked));
    v_done := cardinality(v_ids);
    for v_flow in select substr(x.key, 2)::uuid from unnest(p_keys) x(key) where v_frames and left(x.key, 1) = 'f' loop
        v_members := ff__trim_flow(v_flow, p_now_ms, p_keep_ms);
        if v_members is not null then
            v_ids := v_ids || v_members;
            v_done := v_done + 1;
        end if;
    end loop;
    delete from ff_step s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_stream_frame f using unnest(v_ids) x(id) where f.execution_id = x.id;
    delete from ff_stream_summary s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_stream_meta m using unnest(v_ids) x(id) where m.execution_id = x.id;
    delete from ff_signal s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_waitpoint w using unnest(v_ids) x(id) where w.execution_id = x.id;
    delete from ff_suspension s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_attempt_past a using unnest(v_ids) x(id) where a.execution_id = x.id;
    delete from ff_claim_grant g using unnest(v_ids) x(id) where g.execution_id = x.id;
    delete from ff_budget_usage_by_exec s
     where s.ctid = any (array(
           select l.ctid from ff_budget_usage_by_exec l join unnest(v_ids) x(id) on l.execution_id = x.id
              for update of l skip locked));
    -- Parents that succeeded: their children continue.
    delete from ff_child_work w using ff_execution c
     where c.execution_id = any (v_ids) and c.state = 'completed' and w.parent_id = c.execution_id;
    delete from ff_child k using unnest(v_ids) x(id) where k.child_id = x.id;
    delete from ff_execution c using unnest(v_ids) x(id) where c.execution_id = x.id;
    return v_done;
end
$$;

-- Deletes a flow's own rows, if the whole flow can be deleted, and returns its members, locked, for the caller to
-- delete. NULL: a member is live, an end waits for dispatch, the retention of a member is not over, a member has yet to
-- release spend, or a row is locked. Never waits. p_keep_ms: see ff__trim_rows.
create or replace function ff__trim_flow(p_flow_id uuid, p_now_ms bigint, p_keep_ms bigint[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_locked uuid[];
    v_count int;
begin
    select x.node_count into v_count from ff_flow_core x
     where x.flow_id = p_flow_id and x.live_members = 0
       and not exists (select from ff_flow_dispatch q where q.flow_id = x.flow_id)
       and case when x.node_count = 0 then coalesce(x.terminal_at_ms, x.created_at_ms)
                                           <= p_now_ms - p_keep_ms[case when x.unsuccessful then 2 else 1 end]
                else x.terminal_at_ms is not null end
       and not exists (select from ff_execution c
                        where c.flow_id = x.flow_id
                          and x.terminal_at_ms + ff__retention_ms(c.retention_ms, c.state, p_keep_ms[1],
                                                                  p_keep_ms[2]) > p_now_ms)
       for update skip locked;
    if not found then
        return null;
    end if;
    v_locked := array(select c.execution_id from ff_execution c
                       where c.flow_id = p_flow_id and c.terminal_at_ms is not null and not c.spends
                         for update skip locked);
    if cardinality(v_locked) <> v_count or cardinality(ff__trimmable(v_locked)) <> v_count then
        return null;
    end if;
    delete from ff_edge d where d.flow_id = p_flow_id;
    delete from ff_edge_group g where g.flow_id = p_flow_id;
    delete from ff_cancel_dispatch_outbox o where o.target_eid = any (v_locked);
    delete from ff_cancel_backlog_member m where m.flow_id = p_flow_id;
    delete from ff_cancel_backlog b where b.flow_id = p_flow_id;
    delete from ff_flow_summary s where s.flow_id = p_flow_id;
    delete from ff_flow_core x where x.flow_id = p_flow_id;
    return v_locked;
end
$$;

-- Of ended executions that the caller has locked, those that can be deleted without waiting, with the locks for that:
-- no open transaction holds their streams or their rows in ff_child_work. Executions that have yet to release spend are
-- excluded: spend is recorded under a lock on the execution, so none can be added now.
create or replace function ff__trimmable(p_ids uuid[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_work bigint[];
begin
    p_ids := ff__try_lock_streams(p_ids);
    v_work := array(select w.work_id from ff_child_work w where w.parent_id = any (p_ids) for update skip locked);
    return array(
        select x.id from unnest(p_ids) x(id)
         where not exists (select from ff_child_work w where w.parent_id = x.id and w.work_id <> all (v_work))
           and not ff__has_unreturned_spend(x.id));
end
$$;
