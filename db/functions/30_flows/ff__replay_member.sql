-- The flow's side of a replay, under the locks of the flow and of the member U, which is still terminal; its children are
-- locked here, in the order of their ids. U's end, if it was not passed on yet, is counted and forgotten. U lives again,
-- and so does its flow. Children that have not begun wait for U again. U's own group is judged anew; if U was skipped,
-- its bad edges are first resolved against what their upstreams are now. Errors: flow_already_terminal.
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
        perform ff__flow_over(f);
    end if;

    with gone as (delete from ff_flow_dispatch q where q.flow_id = e.flow_id and q.execution_id = e.execution_id
                  returning q.counted)
    select count(*) into v_pending from gone g where not g.counted;
    delete from ff_cancel_dispatch_outbox o where o.target_eid = e.execution_id;
    update ff_flow_core x
       set live_members = x.live_members + 1 - v_pending, last_mutation_at_ms = e.now_ms
     where x.flow_id = e.flow_id;
    perform ff__reopen_flow(f, e.now_ms);

    -- Downwards.
    update ff_edge d set reopened_at_ms = null
     where d.upstream_eid = e.execution_id and d.reopened_at_ms is not null;
    v_edges := array(
        select d.edge_id from ff_edge d join ff_exec_core c on c.execution_id = d.downstream_eid
         where d.upstream_eid = e.execution_id
           and d.edge_state in ('satisfied', 'failed', 'skipped')
         order by c.execution_id for update of c);
    for v_child in
        update ff_edge d set edge_state = 'applied', upstream_outcome = null, resolved_at_ms = null
          from ff_exec_core c
         where d.flow_id = e.flow_id and d.edge_id = any (v_edges) and c.execution_id = d.downstream_eid
           and c.lifecycle_phase <> 'terminal' and c.started_at_ms is null
        returning d.downstream_eid
    loop
        perform ff__recount_group(e.flow_id, v_child, e.now_ms);
        perform ff__settle_child(ff__open(v_child));
    end loop;

    -- Upwards.
    if e.public_state = 'skipped' then
        update ff_edge d
           set edge_state = case when u.terminal_outcome = 'success' then 'satisfied' else 'applied' end,
               upstream_outcome = case when u.terminal_outcome = 'success' then 'success' end,
               resolved_at_ms = case when u.terminal_outcome = 'success' then e.now_ms end,
               reopened_at_ms = case when u.terminal_outcome not in ('success', 'none') then e.now_ms end
          from ff_exec_core u
         where d.downstream_eid = e.execution_id and d.edge_state in ('failed', 'skipped')
           and u.execution_id = d.upstream_eid;
    end if;
    -- Children that are to be replayed with it.
    update ff_edge d
       set edge_state = 'applied', upstream_outcome = null, resolved_at_ms = null, reopened_at_ms = e.now_ms
      from ff_child_work w
     where w.parent_id = e.execution_id and w.action = 'replay' and d.flow_id = e.flow_id
       and d.upstream_eid = w.child_id and d.downstream_eid = e.execution_id
       and d.edge_state in ('satisfied', 'failed', 'skipped');
    -- What has not begun waits for everything that runs, also for what was replayed while this one was over.
    update ff_edge d set edge_state = 'applied', upstream_outcome = null, resolved_at_ms = null
      from ff_exec_core u, ff_exec_core c
     where d.downstream_eid = e.execution_id
       and d.edge_state in ('satisfied', 'failed', 'skipped') and u.execution_id = d.upstream_eid
       and u.lifecycle_phase <> 'terminal' and c.execution_id = e.execution_id and c.started_at_ms is null;
    perform ff__recount_group(e.flow_id, e.execution_id, e.now_ms);
end
$$;
