-- Runs an ended execution again. The caller holds its lock and, for a member, the lock of the flow and of all members
-- that depend on it. Attached children that did not succeed and can be replayed are added to the work list, and a
-- member waits for those that it waited for before. An attached child whose parent ended other than by success becomes
-- detached; otherwise its parent is checked after commit. Errors: max_replays_exhausted, flow_already_terminal.
create or replace function ff__replay(
    e ff_exec, p_reason text, p_requested_by text, out public_state text, out replay_count int
)
language plpgsql volatile
as $$
declare
    v_max int;
    v_deadline_ms bigint;
    v_parent uuid;
    v_outcome text;
    v_kept boolean;
begin
    select coalesce((c.policy -> 'max_replay_count')::int, 10),
           (c.policy #> '{timeout_policy,execution_deadline_ms}')::bigint, c.replay_count + 1
      into v_max, v_deadline_ms, replay_count
      from ff_execution c where c.execution_id = e.execution_id;
    if replay_count > v_max then
        perform ff__raise('max_replays_exhausted',
                          format('execution %s was replayed %s times', ff__wire_id(e.partition_key, e.execution_id),
                                 v_max),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'max_replay_count', v_max));
    end if;
    -- Not found: no attached parent, or retention is deleting the parent.
    perform from ff_child k join ff_execution i on i.execution_id = k.parent_id
      where k.child_id = e.execution_id and not k.detached for key share of i skip locked;
    v_kept := found;
    select k.parent_id, c.terminal_outcome into v_parent, v_outcome
      from ff_child k left join ff_exec_core c on c.execution_id = k.parent_id
     where k.child_id = e.execution_id and not k.detached;
    if v_outcome not in ('none', 'success') then
        update ff_child k set detached = true where k.child_id = e.execution_id;
    elsif v_outcome is not null and v_kept then
        insert into ff_child_work (parent_id, action) values (v_parent, 'check');
    end if;
    insert into ff_child_work (parent_id, child_id, action)
    select k.parent_id, k.child_id, 'replay' from ff_child k
     where k.parent_id = e.execution_id and not k.detached and ff__replayable(k.child_id)
     order by k.created_at_ms, k.child_id;
    if e.flow_id is not null then
        perform ff__replay_member(e);
    end if;
    e := ff__emit(e, 'operator', 'replayed', p_reason,
                  jsonb_build_object('branch', case when e.flow_id is null then 'solo' else 'member' end,
                                     'replay_count', replay_count, 'reason', p_reason, 'requested_by', p_requested_by));
    public_state := ff__settle(e, null, 'pending_replay_attempt', p_replay_deadline_ms => v_deadline_ms);
end
$$;

-- Updates the flow for a replay, under the locks of the flow and of the member U, which is still terminal; locks U's
-- children here, in the order of their ids. An end of U that was not dispatched yet is counted and deleted. U and its
-- flow become live again. Children that have not started wait for U again. U's own group is evaluated again; if U was
-- skipped, its failed and skipped edges are first resolved against the current state of their upstreams. Errors:
-- flow_already_terminal.
create or replace function ff__replay_member(e ff_exec) returns void
language plpgsql volatile
as $$
declare
    f ff_flow_core;
    v_pending int;
    v_edges uuid[];
    v_child uuid;
begin
    select x.* into f from ff_flow_core x where x.flow_id = e.flow_id;
    if f.public_flow_state = 'cancelled' then
        perform ff__raise_flow_over(f);
    end if;

    with gone as (delete from ff_flow_dispatch q where q.flow_id = e.flow_id and q.execution_id = e.execution_id
                  returning q.counted)
    select count(*) into v_pending from gone g where not g.counted;
    delete from ff_cancel_dispatch_outbox o where o.target_eid = e.execution_id;
    update ff_flow_core x
       set live_members = x.live_members + 1 - v_pending, last_mutation_at_ms = e.now_ms
     where x.flow_id = e.flow_id;
    perform ff__reopen_flow(f, e.now_ms);

    -- Downstream.
    update ff_edge d set reopened_at_ms = null
     where d.upstream_eid = e.execution_id and d.reopened_at_ms is not null;
    v_edges := array(
        select d.edge_id from ff_edge d join ff_execution c on c.execution_id = d.downstream_eid
         where d.upstream_eid = e.execution_id
           and d.edge_state in ('satisfied', 'failed', 'skipped')
         order by c.execution_id for no key update of c);
    for v_child in
        update ff_edge d set edge_state = 'applied', upstream_outcome = null, resolved_at_ms = null
          from ff_execution c
         where d.flow_id = e.flow_id and d.edge_id = any (v_edges) and c.execution_id = d.downstream_eid
           and c.terminal_at_ms is null and c.started_at_ms is null
        returning d.downstream_eid
    loop
        perform ff__recount_group(e.flow_id, v_child, e.now_ms);
        perform ff__resettle_child(ff__open(v_child, true));
    end loop;

    -- Upstream.
    if e.public_state = 'skipped' then
        update ff_edge d
           set edge_state = case when u.state = 'completed' then 'satisfied' else 'applied' end,
               upstream_outcome = case when u.state = 'completed' then 'success' end,
               resolved_at_ms = case when u.state = 'completed' then e.now_ms end,
               reopened_at_ms = case when u.state <> 'completed' and u.terminal_at_ms is not null then e.now_ms end
          from ff_execution u
         where d.downstream_eid = e.execution_id and d.edge_state in ('failed', 'skipped')
           and u.execution_id = d.upstream_eid;
    end if;
    -- Children that are replayed with it.
    update ff_edge d
       set edge_state = 'applied', upstream_outcome = null, resolved_at_ms = null, reopened_at_ms = e.now_ms
      from ff_child_work w
     where w.parent_id = e.execution_id and w.action = 'replay' and d.flow_id = e.flow_id
       and d.upstream_eid = w.child_id and d.downstream_eid = e.execution_id
       and d.edge_state in ('satisfied', 'failed', 'skipped');
    -- A member that has not started waits for all running upstreams, also those replayed while it was terminal.
    update ff_edge d set edge_state = 'applied', upstream_outcome = null, resolved_at_ms = null
      from ff_execution u, ff_execution c
     where d.downstream_eid = e.execution_id
       and d.edge_state in ('satisfied', 'failed', 'skipped') and u.execution_id = d.upstream_eid
       and u.terminal_at_ms is null and c.execution_id = e.execution_id and c.started_at_ms is null;
    perform ff__recount_group(e.flow_id, e.execution_id, e.now_ms);
end
$$;

-- Recounts an edge group from its edges and evaluates it again, whatever its state. The caller holds the locks of the
-- flow and of the child.
create or replace function ff__recount_group(p_flow_id uuid, p_downstream uuid, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    update ff_edge_group g
       set n_edges = n.edges, n_success = n.success, n_failed = n.failed, n_skipped = n.skipped,
           group_state = ff__group_state(g.policy_kind, g.k, n.edges, n.success, n.failed, n.skipped),
           decided_at_ms = case
               when ff__group_state(g.policy_kind, g.k, n.edges, n.success, n.failed, n.skipped) = 'pending' then null
               when g.group_state = ff__group_state(g.policy_kind, g.k, n.edges, n.success, n.failed, n.skipped)
               then g.decided_at_ms
               else p_now_ms end
      from (select count(*) filter (where d.edge_state <> 'staged')::int as edges,
                   count(*) filter (where d.edge_state = 'satisfied')::int as success,
                   count(*) filter (where d.edge_state = 'failed')::int as failed,
                   count(*) filter (where d.edge_state = 'skipped')::int as skipped
              from ff_edge d where d.downstream_eid = p_downstream) n
     where g.flow_id = p_flow_id and g.downstream_eid = p_downstream;
end
$$;

-- Whether an execution ended other than by success and may be replayed: replays are left, and its flow is not
-- cancelled.
create or replace function ff__replayable(p_execution_id uuid) returns boolean
language sql stable
as $$
    select c.state <> 'completed' and c.terminal_at_ms is not null
           and c.replay_count < coalesce((c.policy -> 'max_replay_count')::int, 10)
           and not exists (select from ff_flow_core f where f.flow_id = c.flow_id and f.public_flow_state = 'cancelled')
      from ff_execution c
     where c.execution_id = p_execution_id
$$;
