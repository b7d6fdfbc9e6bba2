-- Deletes what belongs to a flow itself, if it may go as a whole, and returns its members, locked, for the caller to
-- delete. NULL: a member lives, an end waits for dispatch, the retention of a member is not over, a member has yet to
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
