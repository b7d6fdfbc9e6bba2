-- The part of ff_trim_retention that is about flows, each as a whole: those in which nothing lives and nothing waits for
-- dispatch, and whose members may all go. Deletes what belongs to the flow itself, returns how many there were and
-- their members, locked, for the caller to delete. Never waits: a flow with a busy row is left for the next time.
-- Flows younger than p_retention_ms may go if every member's own policy says so; of these the 1000 oldest are looked at.
create or replace function ff__trim_flows(
    p_retention_ms bigint, p_namespace text, p_limit int, out flows int, out members uuid[]
)
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms();
    v_locked uuid[];
    f record;
begin
    flows := 0;
    members := '{}';
    for f in
        select x.flow_id, x.node_count
          from (select a.* from ff_flow_core a where a.terminal_at_ms <= v_now - p_retention_ms
                union all
                (select b.* from ff_flow_core b where b.terminal_at_ms > v_now - p_retention_ms
                  order by b.terminal_at_ms limit 1000)
                union all
                select c.* from ff_flow_core c
                 where c.node_count = 0 and c.terminal_at_ms is null and c.created_at_ms <= v_now - p_retention_ms) x
         where x.live_members = 0 and (p_namespace is null or x.namespace = p_namespace)
           and (x.node_count > 0 or coalesce(x.terminal_at_ms, x.created_at_ms) <= v_now - p_retention_ms)
           and not exists (select from ff_flow_dispatch q where q.flow_id = x.flow_id)
           and not exists (select from ff_exec_core c
                            where c.flow_id = x.flow_id
                              and x.terminal_at_ms + coalesce(c.retention_ms, p_retention_ms) > v_now)
         order by coalesce(x.terminal_at_ms, x.created_at_ms) limit p_limit
    loop
        perform from ff_flow_core x
          where x.flow_id = f.flow_id and x.live_members = 0 and x.node_count = f.node_count
            and not exists (select from ff_flow_dispatch q where q.flow_id = x.flow_id)
            and (x.terminal_at_ms is not null or x.node_count = 0)
            and (x.node_count > 0 or coalesce(x.terminal_at_ms, x.created_at_ms) <= v_now - p_retention_ms)
            and not exists (select from ff_exec_core c
                             where c.flow_id = x.flow_id
                               and x.terminal_at_ms + coalesce(c.retention_ms, p_retention_ms) > v_now)
            for update skip locked;
        continue when not found;
        v_locked := array(select c.execution_id from ff_exec_core c
                           where c.flow_id = f.flow_id and c.lifecycle_phase = 'terminal' for update skip locked);
        continue when cardinality(v_locked) <> f.node_count;
        flows := flows + 1;
        members := members || v_locked;
        delete from ff_edge d where d.flow_id = f.flow_id;
        delete from ff_edge_group g where g.flow_id = f.flow_id;
        delete from ff_cancel_dispatch_outbox o where o.target_eid = any (v_locked);
        delete from ff_cancel_backlog_member m where m.flow_id = f.flow_id;
        delete from ff_cancel_backlog b where b.flow_id = f.flow_id;
        delete from ff_flow_summary s where s.flow_id = f.flow_id;
        delete from ff_flow_core x where x.flow_id = f.flow_id;
    end loop;
end
$$;
