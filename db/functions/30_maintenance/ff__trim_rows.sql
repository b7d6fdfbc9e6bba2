-- The deletions of ff_trim_retention (p_keys: x and the id of an execution, f and that of a flow), re-checked under
-- their locks; what is locked is left. p_keep_ms: the retentions of ends that were successful and of those that were not.
-- Returns how many went; a flow counts one.
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
               -- CASE, so that no plan reads all that ended.
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
