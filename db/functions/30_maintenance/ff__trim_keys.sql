-- The deletions of ff_trim_retention, by the keys that it found (x and the id of an execution, f and that of a flow):
-- looked at again under their locks, busy ones left. Children first, set by set. Returns how many went; a flow is one.
create or replace function ff__trim_keys(
    p_keys text[], p_now_ms bigint, p_retention_ms bigint, p_retention_failed_ms bigint
) returns int
language plpgsql volatile
as $$
declare
    v_calm boolean := pg_try_advisory_xact_lock_shared(hashtextextended('ff_stream_frame ' || current_schema(), 0));
    v_ids uuid[];
    v_members uuid[];
    v_flow uuid;
    v_done int;
begin
    v_ids := array(
        select c.execution_id
          from unnest(p_keys) x(key)
          join ff_exec_core c on c.execution_id = case when left(x.key, 1) = 'x' then substr(x.key, 2)::uuid end
               -- CASE, so that no plan reads all that ended.
               and case when c.lifecycle_phase = 'terminal' and c.flow_id is null
                        then c.terminal_at_ms <= p_now_ms - ff__retention_ms(c.retention_ms, c.terminal_outcome, p_retention_ms,
                                                                             p_retention_failed_ms) end
               -- Something was spent since the scan, or may have been.
               and not c.spends
               -- ff_trim_streams is at work and may hold frames of it.
               and (v_calm or not exists (select from ff_stream_frame f where f.execution_id = c.execution_id))
           for update of c skip locked);
    -- What is spent on its behalf is written under a lock on it: now nothing can be added to what it owes.
    v_ids := array(select x.id from unnest(ff__free_parents(ff__free_streams(v_ids))) x(id) where not ff__owes_spend(x.id));
    v_done := cardinality(v_ids);
    for v_flow in select substr(x.key, 2)::uuid from unnest(p_keys) x(key) where v_calm and left(x.key, 1) = 'f' loop
        v_members := ff__trim_flow(v_flow, p_now_ms, p_retention_ms, p_retention_failed_ms);
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
    delete from ff_attempt a using unnest(v_ids) x(id) where a.execution_id = x.id;
    delete from ff_claim_grant g using unnest(v_ids) x(id) where g.execution_id = x.id;
    delete from ff_budget_usage_by_exec s
     where s.ctid = any (array(
           select l.ctid from ff_budget_usage_by_exec l join unnest(v_ids) x(id) on l.execution_id = x.id
              for update of l skip locked));
    -- Parents that succeeded: their children continue.
    delete from ff_child_work w using ff_exec_core c
     where c.execution_id = any (v_ids) and c.terminal_outcome = 'success' and w.parent_id = c.execution_id;
    delete from ff_child k using unnest(v_ids) x(id) where k.child_id = x.id;
    delete from ff_exec_input i using unnest(v_ids) x(id) where i.execution_id = x.id;
    delete from ff_exec_core c using unnest(v_ids) x(id) where c.execution_id = x.id;
    return v_done;
end
$$;
