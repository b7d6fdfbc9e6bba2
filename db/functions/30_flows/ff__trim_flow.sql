-- Deletes what belongs to a flow itself, if it may go as a whole (see ff__trim_flows), and returns its members, locked, for
-- the caller to delete. NULL: it may not, a row of it is busy, or a member has still to give back what it spent. Never waits.
create or replace function ff__trim_flow(
    p_flow_id uuid, p_now_ms bigint, p_retention_ms bigint, p_retention_failed_ms bigint
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_locked uuid[];
    v_count int;
begin
    select x.node_count into v_count from ff_flow_core x
     where x.flow_id = p_flow_id and x.live_members = 0
       and not exists (select from ff_flow_dispatch q where q.flow_id = x.flow_id)
       and (x.terminal_at_ms is not null or x.node_count = 0)
       and (x.node_count > 0 or coalesce(x.terminal_at_ms, x.created_at_ms)
            <= p_now_ms - case when x.unsuccessful then p_retention_failed_ms else p_retention_ms end)
       and not exists (select from ff_exec_core c
                        where c.flow_id = x.flow_id
                          and x.terminal_at_ms + ff__retention_ms(c.retention_ms, c.terminal_outcome, p_retention_ms,
                                                                  p_retention_failed_ms) > p_now_ms)
       for update skip locked;
    if not found then
        return null;
    end if;
    v_locked := array(select c.execution_id from ff_exec_core c
                       where c.flow_id = p_flow_id and c.lifecycle_phase = 'terminal' and not c.spends
                         for update skip locked);
    if cardinality(v_locked) <> v_count or cardinality(ff__free_parents(ff__free_streams(v_locked))) <> v_count
       or exists (select from unnest(v_locked) x(id) where ff__owes_spend(x.id)) then
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
