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
    v_left bigint[] := '{}'::bigint[];
    v_events bigint[];
    v_ids uuid[];
    v_outcomes text[];
    v_edges uuid[];
    v_results text[];
    v_children uuid[];
    v_locked uuid[];
    v_streams boolean;
    v_decided uuid[];
    v_all boolean;
    v_success int;
    v_failed int;
    v_skipped int;
    v_before text;
    v_batch record;
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

        -- The edges that wait for these ends, then those whose child can be had. OFFSET 0 keeps the planner from reading a
        -- whole flow when statistics do not know that one can be large.
        select coalesce(array_agg(x.edge_id), '{}'), array_agg(x.downstream_eid), array_agg(x.outcome)
          into v_edges, v_children, v_results
          from (select d.edge_id, d.downstream_eid, u.outcome
                  from unnest(v_ids, v_outcomes) u(id, outcome)
                 cross join lateral (
                       select t.edge_id, t.downstream_eid from ff_edge t
                        where t.flow_id = p_flow_id and t.upstream_eid = u.id and t.edge_state = 'applied'
                          and t.reopened_at_ms is null offset 0) d
                 order by d.downstream_eid, d.edge_id limit p_max_edges - r.edges_resolved + 1) x;
        v_all := cardinality(v_edges) <= p_max_edges - r.edges_resolved;
        v_decided := '{}';
        if v_edges <> '{}' then
            select coalesce(array_agg(l.execution_id), '{}'), bool_or(l.stream_open) into v_locked, v_streams
              from (select c.execution_id, c.stream_open
                      from (select distinct y.id from unnest(v_children) y(id)) x
                      join ff_exec_core c on c.execution_id = x.id
                     order by c.execution_id for update of c skip locked) l;
            if v_streams then
                v_locked := ff__free_streams(v_locked);
            end if;
            for v_batch in
                select x.outcome, array_agg(x.edge_id) as edges
                  from (select z.edge_id, z.outcome from unnest(v_edges, v_children, v_results) with ordinality
                                                         z(edge_id, child, outcome, n)
                         where z.child = any (v_locked) order by z.n limit p_max_edges - r.edges_resolved) x
                 group by x.outcome
            loop
                for v_child, v_success, v_failed, v_skipped in
                    with resolved as (
                        update ff_edge d
                           set edge_state = ff__edge_result(d.dependency_kind, v_batch.outcome),
                               upstream_outcome = v_batch.outcome, resolved_at_ms = v_now
                         where d.flow_id = p_flow_id and d.edge_id = any (v_batch.edges)
                        returning d.downstream_eid, d.edge_state)
                    select x.downstream_eid, count(*) filter (where x.edge_state = 'satisfied'),
                           count(*) filter (where x.edge_state = 'failed'),
                           count(*) filter (where x.edge_state = 'skipped')
                      from resolved x group by x.downstream_eid
                loop
                    -- A group that is decided only counts on.
                    update ff_edge_group k
                       set n_success = k.n_success + v_success, n_failed = k.n_failed + v_failed,
                           n_skipped = k.n_skipped + v_skipped
                     where k.flow_id = p_flow_id and k.downstream_eid = v_child
                    returning k.group_state, ff__group_state(k.policy_kind, k.k, k.n_edges, k.n_success, k.n_failed,
                                                             k.n_skipped)
                      into v_before, v_state;
                    if v_before = 'pending' and v_state <> 'pending' then
                        update ff_edge_group k set group_state = v_state, decided_at_ms = v_now
                         where k.flow_id = p_flow_id and k.downstream_eid = v_child;
                        v_decided := v_decided || v_child;
                    end if;
                end loop;
                r.edges_resolved := r.edges_resolved + cardinality(v_batch.edges);
                v_all := v_all and cardinality(v_locked) = (select count(distinct y.id) from unnest(v_children) y(id));
            end loop;
            v_all := v_all and v_locked <> '{}';
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
           and (v_all or not exists (select from ff_edge d
                                      where d.flow_id = p_flow_id and d.upstream_eid = q.execution_id
                                        and d.edge_state = 'applied' and d.reopened_at_ms is null));
        get diagnostics v_new = row_count;
        r.rows_done := r.rows_done + v_new;
        if v_new < cardinality(v_events) then
            -- At the limit, or a child was busy: the first time it may well be free at once.
            with l as (
                update ff_flow_dispatch q
                   set counted = true, dispatch_attempts = q.dispatch_attempts + 1,
                       next_dispatch_at_ms = case
                           when r.edges_resolved >= p_max_edges or q.dispatch_attempts = 0 then v_now
                           else v_now + least(500, 50 * 2 ^ least(q.dispatch_attempts, 12))::bigint end
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
