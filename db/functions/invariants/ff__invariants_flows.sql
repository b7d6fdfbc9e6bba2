-- Rules of flows that must hold at every commit; each branch returns the rows that break one. Pending
-- dispatch (ff_flow_dispatch) is taken into account, so that they hold whether or not it has drained.
create or replace function ff__invariants_flows() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
with f as not materialized (select x.* from ff_flow_core x),
     d as not materialized (select x.*, ff__wire_id(ff__partition(x.upstream_eid), x.upstream_eid) || ' -> '
                       || ff__wire_id(ff__partition(x.downstream_eid), x.downstream_eid) as ends from ff_edge x),
     g as not materialized (select x.*, ff__wire_id(ff__partition(x.downstream_eid), x.downstream_eid) as child
            from ff_edge_group x),
     m as not materialized (select c.*, ff__wire_id(c.partition_key, c.execution_id) as wire_id from ff_exec_core c
            where c.flow_id is not null)
    select 'flow_ready', m.wire_id, format('can be claimed, its group is %s', g.group_state)
      from m join g on g.downstream_eid = m.execution_id
     where m.lifecycle_phase = 'runnable' and m.eligibility_state = 'eligible_now' and g.n_edges > 0
       and g.group_state in ('pending', 'impossible')
    union all
    select 'group_counters', g.child,
           format('%s edges, %s success, %s failed, %s skipped', g.n_edges, g.n_success, g.n_failed, g.n_skipped)
      from g left join d on d.flow_id = g.flow_id and d.downstream_eid = g.downstream_eid
     group by g.child, g.n_edges, g.n_success, g.n_failed, g.n_skipped
    having g.n_edges <> count(d.edge_id) filter (where d.edge_state <> 'staged')
        or g.n_success <> count(d.edge_id) filter (where d.edge_state = 'satisfied')
        or g.n_failed <> count(d.edge_id) filter (where d.edge_state = 'failed')
        or g.n_skipped <> count(d.edge_id) filter (where d.edge_state = 'skipped')
    union all
    select 'group_missing', d.ends, d.edge_state
      from d
     where d.edge_state <> 'staged'
       and not exists (select from ff_edge_group x where x.flow_id = d.flow_id and x.downstream_eid = d.downstream_eid)
    union all
    select 'group_state', g.child, format('%s: %s of %s, k %s, %s', g.policy_kind, g.n_success, g.n_edges, g.k,
                                          g.group_state)
      from g
     where g.n_edges > 0
       and (g.group_state = 'satisfied'
            and g.n_success < case g.policy_kind when 'all_of' then g.n_edges else coalesce(g.k, 1) end
            or g.group_state = 'pending'
               and g.n_success >= case g.policy_kind when 'all_of' then g.n_edges else coalesce(g.k, 1) end
            or g.group_state = 'pending' and g.policy_kind = 'all_of' and g.n_failed + g.n_skipped > 0)
        or (g.group_state = 'pending') <> (g.decided_at_ms is null)
        or (g.policy_kind = 'quorum') <> (g.k is not null) or (g.policy_kind = 'all_of') <> (g.on_satisfied is null)
    union all
    select 'dependencies', m.wire_id, format('waits for a group that is %s', coalesce(g.group_state, 'absent'))
      from m left join g on g.flow_id = m.flow_id and g.downstream_eid = m.execution_id
     where m.eligibility_state = 'blocked_by_dependencies'
       and (coalesce(g.n_edges, 0) = 0 or g.group_state in ('satisfied', 'impossible'))
    union all
    select 'solo_dependencies', ff__wire_id(c.partition_key, c.execution_id), 'waits without a flow'
      from ff_exec_core c where c.flow_id is null and c.eligibility_state = 'blocked_by_dependencies'
    union all
    select 'edge_unresolved', d.ends, format('applied, the upstream is %s', m.terminal_outcome)
      from d join m on m.execution_id = d.upstream_eid
     where d.edge_state = 'applied' and d.reopened_at_ms is null and m.lifecycle_phase = 'terminal'
       and not exists (select from ff_flow_dispatch q where q.execution_id = m.execution_id)
    union all
    select 'edge_resolved', d.ends, format('%s, the upstream is %s', d.edge_state, u.public_state)
      from d join m u on u.execution_id = d.upstream_eid join m c on c.execution_id = d.downstream_eid
     where d.edge_state in ('satisfied', 'failed', 'skipped') and u.lifecycle_phase <> 'terminal'
       and not (u.replay_count > 0 and (c.started_at_ms is not null or c.lifecycle_phase = 'terminal'))
    union all
    select 'edge_columns', d.ends, d.edge_state
      from d
     where (d.edge_state in ('satisfied', 'failed', 'skipped')) <> (d.resolved_at_ms is not null)
        or (d.edge_state in ('satisfied', 'failed', 'skipped')) <> (d.upstream_outcome is not null)
        or (d.edge_state = 'staged') <> (d.applied_at_ms is null)
        or d.reopened_at_ms is not null and d.edge_state <> 'applied'
    union all
    select 'edge_ends', d.ends, d.flow_id::text
      from d
      left join f on f.flow_id = d.flow_id
      left join ff_exec_core u on u.execution_id = d.upstream_eid
      left join ff_exec_core c on c.execution_id = d.downstream_eid
     where d.upstream_eid = d.downstream_eid
        or (u.flow_id, u.partition_key) is distinct from (f.flow_id, f.partition_key)
        or (c.flow_id, c.partition_key) is distinct from (f.flow_id, f.partition_key)
    union all
    select 'flow_cycle', w.flow_id::text, 'members wait for each other'
      from (select x.flow_id, max(x.node) as nodes, array_agg(x.node order by x.edge_id) filter (where x.up) as origins,
                   array_agg(x.node order by x.edge_id) filter (where not x.up) as ends
              from (select y.flow_id, y.edge_id, y.up,
                           dense_rank() over (partition by y.flow_id order by y.id)::int as node
                      from (select t.flow_id, t.edge_id, true as up, t.upstream_eid as id from ff_edge t
                            union all select t.flow_id, t.edge_id, false, t.downstream_eid from ff_edge t) y) x
             group by x.flow_id) w
     where ff__find_cycle(w.nodes, w.origins, w.ends) is not null
    union all
    select 'flow_counts', f.flow_id::text,
           format('%s nodes, %s edges, %s alive; really %s, %s, %s', f.node_count, f.edge_count, f.live_members,
                  n.nodes,
                  n.edges, n.alive)
      from f
     cross join lateral (
           select (select count(*) from ff_exec_core c where c.flow_id = f.flow_id) as nodes,
                  (select count(*) from ff_edge t where t.flow_id = f.flow_id) as edges,
                  (select count(*) from ff_exec_core c where c.flow_id = f.flow_id and c.lifecycle_phase <> 'terminal')
                  + (select count(*) from ff_flow_dispatch q where q.flow_id = f.flow_id and not q.counted) as alive) n
     where (f.node_count, f.edge_count, f.live_members) is distinct from (n.nodes, n.edges, n.alive)
    union all
    select 'flow_state', f.flow_id::text, format('%s with %s alive', f.public_flow_state, f.live_members)
      from f
     where f.public_flow_state = 'open' and f.node_count > 0 and f.live_members = 0
           and not exists (select from ff_flow_dispatch q where q.flow_id = f.flow_id)
        or f.public_flow_state in ('completed', 'failed') and f.live_members > 0
        or (f.public_flow_state in ('completed', 'failed', 'cancelled')) <> (f.terminal_at_ms is not null)
        or (f.public_flow_state = 'cancelled') <> (f.cancellation_policy is not null)
    union all
    select 'flow_verdict', f.flow_id::text, f.public_flow_state
      from f
     where f.public_flow_state = case when ff__flow_failed(f.flow_id) then 'completed' else 'failed' end
        or f.terminal_at_ms is not null and f.live_members = 0 and f.node_count > 0
           and not exists (select from ff_flow_dispatch q where q.flow_id = f.flow_id)
           and (f.unsuccessful, f.retention_ms) <> (
               select bool_or(m.terminal_outcome in ('failed', 'cancelled', 'expired') and m.retention_ms is null),
                      case when count(*) = count(m.retention_ms) then max(m.retention_ms) else -1 end
                 from m where m.flow_id = f.flow_id)
    union all
    select 'member_flow', m.wire_id, m.flow_id::text
      from m left join f on f.flow_id = m.flow_id where f.partition_key is distinct from m.partition_key
    union all
    select 'cancel_owed', f.flow_id::text, format('%s members are neither ended nor owed', n.lost)
      from f
     cross join lateral (
           select count(*) as lost from ff_exec_core c
            where c.flow_id = f.flow_id and c.lifecycle_phase <> 'terminal'
              and not exists (select from ff_cancel_backlog_member b
                               where b.flow_id = f.flow_id and b.execution_id = c.execution_id)) n
     where f.public_flow_state = 'cancelled' and f.cancellation_policy <> 'cancel_flow_only' and n.lost > f.forced_acks
    union all
    select 'cancel_header', b.flow_id::text, 'a backlog without members'
      from ff_cancel_backlog b
     where not exists (select from ff_cancel_backlog_member x where x.flow_id = b.flow_id)
    union all
    select 'cancel_member', m.wire_id, 'owed, but ended or without a header'
      from ff_cancel_backlog_member b left join m on m.execution_id = b.execution_id
     where not exists (select from ff_cancel_backlog x where x.flow_id = b.flow_id)
        or m.execution_id is null
        or m.lifecycle_phase = 'terminal'
           and not exists (select from ff_flow_dispatch q where q.execution_id = b.execution_id)
    union all
    select 'dispatch_row', q.event_id::text, 'of an execution that lives, is gone or has two'
      from ff_flow_dispatch q
     where not exists (select from ff_exec_core c
                        where c.execution_id = q.execution_id and c.flow_id = q.flow_id
                          and c.lifecycle_phase = 'terminal' and c.terminal_outcome = q.outcome)
        or exists (select from ff_flow_dispatch o where o.execution_id = q.execution_id and o.event_id <> q.event_id)
    union all
    select 'siblings', m.wire_id, format('runs on for %s, which is decided', g.child)
      from g
      join d on d.flow_id = g.flow_id and d.downstream_eid = g.downstream_eid and d.edge_state = 'applied'
      join m on m.execution_id = d.upstream_eid and m.lifecycle_phase <> 'terminal'
     where g.on_satisfied = 'cancel_remaining' and g.group_state in ('satisfied', 'impossible')
       and m.replay_count = 0 -- a replayed member runs again in spite of the decision
       and not ff__feeds_open_group(g.flow_id, d.upstream_eid)
       and not exists (select from ff_cancel_dispatch_outbox o where o.target_eid = d.upstream_eid)
       and not exists (select from ff_flow_dispatch q where q.flow_id = g.flow_id)
    union all
    select 'flow_orphan', o.flow_id::text, o.kind
      from (select x.flow_id, 'ff_edge_group' as kind from ff_edge_group x
            union all select x.flow_id, 'ff_flow_dispatch' from ff_flow_dispatch x
            union all select x.flow_id, 'ff_cancel_dispatch_outbox' from ff_cancel_dispatch_outbox x
            union all select x.flow_id, 'ff_cancel_backlog' from ff_cancel_backlog x
            union all select x.flow_id, 'ff_flow_summary' from ff_flow_summary x) o
     where not exists (select from ff_flow_core x where x.flow_id = o.flow_id);
end
$$;
