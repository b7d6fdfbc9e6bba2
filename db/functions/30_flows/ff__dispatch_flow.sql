-- Passes the ends of a flow's members on to those that wait for them: all rows of its work list, level by level (what a
-- level ends is the next), until none is left, p_max_edges edges are resolved or 50 levels are done. The caller holds
-- the flow. Children and siblings are locked without waiting; what is busy stays for the next time.
-- Crash-safe by being one transaction with the end itself: a row is counted once, an edge resolved once, a group
-- decides once. The group of an ended member changes without its row's lock: nothing but a replay, which takes the
-- flow, could read it.
create or replace function ff__dispatch_flow(p_flow_id uuid, p_max_edges int default 1000) returns ff_dispatched
language plpgsql volatile
as $$
declare
    r ff_dispatched := (0, 0, 0, 0, 0, -1, false)::ff_dispatched;
    v_now bigint := ff_now_ms();
    v_cancelled boolean := (select f.public_flow_state = 'cancelled' from ff_flow_core f where f.flow_id = p_flow_id);
    v_counted int := 0;
    v_new int;
    v_left bigint[] := '{}';
    v_events bigint[];
    v_ids uuid[];
    v_outcomes text[];
    v_edges uuid[];
    v_decided uuid[];
    v_closed uuid[];
    v_child uuid;
    v_state text;
    e ff_exec;
begin
    perform set_config('ff.flow', p_flow_id::text, true);
    loop
        select array_agg(x.event_id), array_agg(x.execution_id), array_agg(x.outcome),
               count(*) filter (where not x.counted)
          into v_events, v_ids, v_outcomes, v_new
          from (select q.* from ff_flow_dispatch q
                 where q.flow_id = p_flow_id and q.event_id <> all (v_left)
                 order by q.event_id limit 5000) x;
        exit when v_events is null or r.depth >= 49;
        r.depth := r.depth + 1;

        -- Once per row: one life less, and nobody needs to cancel it or wait on its behalf any more.
        v_counted := v_counted + v_new;
        delete from ff_cancel_dispatch_outbox o where o.target_eid = any (v_ids);
        if v_cancelled then
            delete from ff_cancel_backlog_member m where m.flow_id = p_flow_id and m.execution_id = any (v_ids);
        end if;
        with closed as (
            update ff_edge_group g set group_state = 'cancelled', decided_at_ms = v_now
             where g.flow_id = p_flow_id and g.downstream_eid = any (v_ids) and g.group_state = 'pending'
            returning g.downstream_eid)
        select coalesce(array_agg(c.downstream_eid), '{}') into v_closed from closed c;

        v_decided := '{}';
        v_edges := array(
            select d.edge_id from ff_edge d join ff_exec_core c on c.execution_id = d.downstream_eid
             where d.flow_id = p_flow_id and d.upstream_eid = any (v_ids) and d.edge_state = 'applied'
               and d.reopened_at_ms is null
             order by d.downstream_eid, d.edge_id limit p_max_edges - r.edges_resolved
               for update of c skip locked);
        if v_edges <> '{}' then
            with resolved as (
                update ff_edge d
                   set edge_state = ff__edge_result(d.dependency_kind, u.outcome), upstream_outcome = u.outcome,
                       resolved_at_ms = v_now
                  from unnest(v_ids, v_outcomes) u(id, outcome)
                 where d.flow_id = p_flow_id and d.edge_id = any (v_edges) and d.upstream_eid = u.id
                returning d.downstream_eid, d.edge_state
            ), n as (
                select x.downstream_eid, count(*) filter (where x.edge_state = 'satisfied')::int as success,
                       count(*) filter (where x.edge_state = 'failed')::int as failed,
                       count(*) filter (where x.edge_state = 'skipped')::int as skipped
                  from resolved x group by x.downstream_eid
            ), counted as (
                update ff_edge_group g
                   set n_success = g.n_success + n.success, n_failed = g.n_failed + n.failed,
                       n_skipped = g.n_skipped + n.skipped,
                       group_state = case when g.group_state <> 'pending' then g.group_state
                                          else ff__group_state(g.policy_kind, g.k, g.n_edges, g.n_success + n.success,
                                                               g.n_failed + n.failed, g.n_skipped + n.skipped) end,
                       decided_at_ms = case when g.group_state <> 'pending' then g.decided_at_ms
                                            when ff__group_state(g.policy_kind, g.k, g.n_edges, g.n_success + n.success,
                                                                 g.n_failed + n.failed, g.n_skipped + n.skipped)
                                                 <> 'pending' then v_now end
                  from n
                  join ff_edge_group b on b.flow_id = p_flow_id and b.downstream_eid = n.downstream_eid
                 where g.flow_id = p_flow_id and g.downstream_eid = n.downstream_eid
                returning g.downstream_eid, b.group_state = 'pending' and g.group_state <> 'pending' as decided
            )
            select coalesce(array_agg(c.downstream_eid order by c.downstream_eid) filter (where c.decided), '{}')
              into v_decided from counted c;
            r.edges_resolved := r.edges_resolved + cardinality(v_edges);
        end if;

        foreach v_child in array v_decided loop
            e := ff__open(v_child);
            v_state := ff__settle_child(e);
            if e.eligibility_state = 'blocked_by_dependencies' and v_state in ('waiting', 'resumable', 'delayed') then
                r.children_released := r.children_released + 1;
            elsif e.lifecycle_phase = 'runnable' and v_state = 'skipped' then
                r.children_skipped := r.children_skipped + 1;
            end if;
        end loop;
        if v_decided || v_closed <> '{}' then
            r.siblings_cancelled := r.siblings_cancelled + ff__cancel_siblings(p_flow_id, v_decided || v_closed);
        end if;

        delete from ff_flow_dispatch q
         where q.event_id = any (v_events)
           and not exists (select from ff_edge d
                            where d.flow_id = p_flow_id and d.upstream_eid = q.execution_id
                              and d.edge_state = 'applied' and d.reopened_at_ms is null);
        get diagnostics v_new = row_count;
        r.rows_done := r.rows_done + v_new;
        if v_new < cardinality(v_events) then
            -- At the limit, or a child was busy: the first time it may well be free at once.
            with l as (
                update ff_flow_dispatch q
                   set counted = true, dispatch_attempts = q.dispatch_attempts + 1,
                       next_dispatch_at_ms = case
                           when r.edges_resolved >= p_max_edges or q.dispatch_attempts = 0 then v_now
                           else v_now + least(60000, 50 * 2 ^ least(q.dispatch_attempts, 12))::bigint end
                 where q.event_id = any (v_events)
                returning q.event_id)
            select v_left || array_agg(l.event_id) into v_left from l;
        end if;
        exit when r.edges_resolved >= p_max_edges;
    end loop;
    r.depth := greatest(r.depth, 0);

    if v_counted > 0 then
        update ff_flow_core f set live_members = f.live_members - v_counted, last_mutation_at_ms = v_now
         where f.flow_id = p_flow_id;
    end if;
    if v_cancelled then
        delete from ff_cancel_backlog b
         where b.flow_id = p_flow_id
           and not exists (select from ff_cancel_backlog_member m where m.flow_id = p_flow_id);
    end if;
    r.rows_left := exists (select from ff_flow_dispatch q where q.flow_id = p_flow_id);
    if not r.rows_left then
        perform ff__end_flow(p_flow_id);
    end if;
    return r;
end
$$;
