-- Applies the ends of a flow's members to the members that depend on them: first the new rows of the work list, level
-- by level (members ended by one level form the next), then deferred rows that are due. Stops when none is left,
-- p_max_edges edges are resolved or 50 levels are done. The caller holds the flow lock. Children and siblings are
-- locked without waiting; a row with a locked child is deferred. Reads only a few deferred rows, and more only if these
-- are completed: the cost does not depend on the number of rows with locked children.
-- Crash-safe because it runs in one transaction with the end itself: a row is counted once, an edge resolved once, a
-- group decided once. The group of an ended member changes without a lock on the member's row: only a replay, which
-- locks the flow, could read it.
create or replace function ff__dispatch_flow(p_flow_id uuid, p_max_edges int default 1000) returns ff_dispatched
language plpgsql volatile
as $$
declare
    r ff_dispatched := (0, 0, 0, 0, 0, -1, false)::ff_dispatched;
    v_now bigint := ff__now_ms();
    v_cancelled boolean := (select f.public_flow_state = 'cancelled' from ff_flow_core f where f.flow_id = p_flow_id);
    v_counted int := 0;
    v_retry int := 16;
    v_put_off bigint[] := ff__backed_off_ends(p_flow_id, v_now, v_retry);
    v_retried boolean;
    v_events bigint[];
    v_ids uuid[];
    v_outcomes text[];
    v_edges tid[];
    v_results text[];
    v_rows bigint[];
    v_left bigint[];
    v_done bigint[];
    v_children uuid[];
    v_locked uuid[];
    v_busy uuid[];
    v_streams boolean;
    v_decided uuid[];
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
    loop
        exit when r.depth >= 49;
        select array_agg(x.event_id), array_agg(x.execution_id), array_agg(x.outcome)
          into v_events, v_ids, v_outcomes
          from (select q.* from ff_flow_dispatch q where q.flow_id = p_flow_id and not q.counted
                 order by q.event_id limit 5000) x;
        v_retried := v_events is null;
        if v_retried then
            select array_agg(q.event_id), array_agg(q.execution_id), array_agg(q.outcome)
              into v_events, v_ids, v_outcomes
              from ff_flow_dispatch q where q.event_id = any (v_put_off);
            exit when v_events is null;
        end if;
        r.depth := r.depth + 1;

        -- The edges that wait for these ends, row by row up to the limit, then those whose child can be locked. With
        -- OFFSET 0 the plan does not read the whole flow when statistics underestimate its size.
        select coalesce(array_agg(x.ctid), '{}'), array_agg(x.downstream_eid), array_agg(x.outcome), array_agg(x.n)
          into v_edges, v_children, v_results, v_rows
          from (select d.ctid, d.downstream_eid, u.outcome, u.n
                  from unnest(v_ids, v_outcomes) with ordinality u(id, outcome, n)
                 cross join lateral (
                       select t.ctid, t.downstream_eid from ff_edge t
                        where t.upstream_eid = u.id and t.edge_state = 'applied'
                          and t.reopened_at_ms is null offset 0) d
                 limit p_max_edges - r.edges_resolved + 1) x;
        -- At the limit the row of the last edge stays for later, and the rows after it are not processed.
        v_left := '{}';
        if cardinality(v_edges) > p_max_edges - r.edges_resolved then
            v_events := v_events[:v_rows[cardinality(v_edges)]];
            v_ids := v_ids[:cardinality(v_events)];
            v_left := v_events[cardinality(v_events):];
        end if;
        if not v_retried then
            v_counted := v_counted + cardinality(v_events);
        end if;

        -- An ended member needs no cancellation, and its own group is closed.
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
        if v_edges <> '{}' then
            select coalesce(array_agg(l.execution_id), '{}'), bool_or(l.stream_open) into v_locked, v_streams
              from (select c.execution_id, c.stream_open
                      from (select distinct y.id from unnest(v_children) y(id)) x
                      join ff_execution c on c.execution_id = any (array[x.id])
                     order by c.execution_id for no key update of c skip locked) l;
            if v_streams then
                v_locked := ff__try_lock_streams(v_locked);
            end if;
            v_busy := array(select unnest(v_children) except select unnest(v_locked));
            if v_busy <> '{}' then
                v_left := array(select unnest(v_left)
                                union
                                select v_events[z.n] from unnest(v_children, v_rows) z(child, n)
                                 where z.child = any (v_busy));
            end if;
            for v_batch in
                select x.outcome, array_agg(x.edge) as edges
                  from (select z.edge, z.outcome
                          from unnest(v_edges, v_children, v_results) with ordinality z(edge, child, outcome, n)
                         where z.child <> all (v_busy) order by z.n limit p_max_edges - r.edges_resolved) x
                 group by x.outcome
            loop
                for v_child, v_success, v_failed, v_skipped in
                    with resolved as (
                        update ff_edge d
                           set edge_state = ff__edge_result(d.dependency_kind, v_batch.outcome),
                               upstream_outcome = v_batch.outcome, resolved_at_ms = v_now
                         where d.ctid = any (v_batch.edges) -- the flow is held: no other transaction moves them
                        returning d.downstream_eid, d.edge_state)
                    select x.downstream_eid, count(*) filter (where x.edge_state = 'satisfied'),
                           count(*) filter (where x.edge_state = 'failed'),
                           count(*) filter (where x.edge_state = 'skipped')
                      from resolved x group by x.downstream_eid
                loop
                    -- A decided group only updates its counters.
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
            end loop;
        end if;

        foreach v_child in array v_decided loop
            e := ff__open(v_child, true);
            v_state := ff__resettle_child(e);
            if e.eligibility_state = 'blocked_by_dependencies' and v_state in ('waiting', 'resumable', 'delayed') then
                r.children_released := r.children_released + 1;
            elsif e.lifecycle_phase = 'runnable' and v_state = 'skipped' then
                r.children_skipped := r.children_skipped + 1;
            end if;
        end loop;
        if v_decided || v_closed <> '{}' then
            r.siblings_cancelled := r.siblings_cancelled + ff__cancel_siblings(p_flow_id, v_decided || v_closed);
        end if;

        v_done := array(select unnest(v_events) except select unnest(v_left));
        delete from ff_flow_dispatch q where q.event_id = any (v_done);
        r.rows_done := r.rows_done + cardinality(v_done);
        if v_left <> '{}' then
            -- A locked child is often unlocked at the next try.
            update ff_flow_dispatch q
               set counted = true, dispatch_attempts = q.dispatch_attempts + 1,
                   next_dispatch_at_ms = case
                       when r.edges_resolved >= p_max_edges or q.dispatch_attempts = 0 then v_now
                       else v_now + least(5000, 50 * 2 ^ least(q.dispatch_attempts, 12))::bigint end
             where q.event_id = any (v_left);
        end if;
        exit when r.edges_resolved >= p_max_edges;
        if v_retried then
            v_retry := v_retry * 4;
            v_put_off := case when v_done <> '{}' then ff__backed_off_ends(p_flow_id, v_now, v_retry) end;
        end if;
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

-- Deferred ends of a flow's members that are due, at most p_limit. No end is deferred for more than a minute: a due
-- time further ahead predates a clock step backwards, and counts as due.
create or replace function ff__backed_off_ends(p_flow_id uuid, p_now bigint, p_limit int) returns bigint[]
language sql stable
as $$
    select array(
        (select q.event_id from ff_flow_dispatch q
          where q.flow_id = p_flow_id and q.counted and q.next_dispatch_at_ms <= p_now
          order by q.next_dispatch_at_ms limit p_limit)
        union all
        (select q.event_id from ff_flow_dispatch q
          where q.flow_id = p_flow_id and q.counted and q.next_dispatch_at_ms > p_now + 60000
          order by q.next_dispatch_at_ms limit p_limit)
        limit p_limit)
$$;

-- The state of an edge after the end of its upstream.
create or replace function ff__edge_result(p_kind text, p_outcome text) returns text
language sql immutable parallel safe
as $$
    select case when p_outcome = 'success' or p_kind = 'any_terminal' then 'satisfied'
                when p_outcome = 'skipped' then 'skipped' else 'failed' end
$$;

-- Evaluates an edge group from its counters. k is 1 for any_of. A quorum with fewer edges than it needs is pending: the
-- graph may still grow.
create or replace function ff__group_state(
    p_policy text, p_k int, p_edges int, p_success int, p_failed int, p_skipped int
) returns text
language sql immutable parallel safe
as $$
    select case
        when p_policy = 'all_of' then
            case when p_failed + p_skipped > 0 then 'impossible'
                 when p_edges > 0 and p_success = p_edges then 'satisfied' else 'pending' end
        when p_success >= coalesce(p_k, 1) then 'satisfied'
        when p_edges >= coalesce(p_k, 1) and p_failed + p_skipped > p_edges - coalesce(p_k, 1) then 'impossible'
        else 'pending' end
$$;

-- Settles a runnable child again after its group was decided or reopened, under the locks of the flow and of the child.
-- A child that runs or has ended does not change state, but its row is written unchanged: a verb at REPEATABLE READ
-- whose snapshot does not show the decision then fails to serialize, instead of waiting for a past event. Returns the
-- public state.
create or replace function ff__resettle_child(e ff_exec) returns text
language plpgsql volatile
as $$
begin
    if e.lifecycle_phase = 'runnable' then
        return ff__settle(e, p_delay_until_ms => e.delay_until_ms);
    end if;
    update ff_execution c set last_mutation_at_ms = c.last_mutation_at_ms where c.execution_id = e.execution_id;
    return e.public_state;
end
$$;

-- After groups were decided, or closed by the end of their child: cancels each member that feeds one of them, has not
-- ended, feeds no undecided group, and feeds a decided group with cancel_remaining. A locked member is recorded in the
-- outbox instead. Staged edges do not count. Each candidate is evaluated once, by its own edges. The caller holds the
-- flow lock. Returns the number of members cancelled.
create or replace function ff__cancel_siblings(p_flow_id uuid, p_downstreams uuid[]) returns int
language plpgsql volatile
as $$
declare
    v_count int := 0;
    v_reason text;
    r record;
    e ff_exec;
begin
    for r in
        with u as materialized (
            select c.execution_id as id
              from (select distinct d.upstream_eid as id
                      from unnest(p_downstreams) x(id)
                     cross join lateral (
                           select t.upstream_eid from ff_edge t
                            where t.downstream_eid = x.id and t.edge_state = 'applied'
                           offset 0) d) y
              join ff_execution c on c.execution_id = any (array[y.id]) and c.terminal_at_ms is null)
        select u.id as upstream_eid, g.downstream_eid, g.group_state
          from u
         cross join lateral (
               select t.downstream_eid, k.group_state
                 from ff_edge t
                cross join lateral (
                      select y.group_state, y.on_satisfied from ff_edge_group y
                       where y.flow_id = p_flow_id and y.downstream_eid = t.downstream_eid offset 0) k
                where t.upstream_eid = u.id and t.edge_state = 'applied'
                  and k.on_satisfied = 'cancel_remaining' and k.group_state in ('satisfied', 'impossible')
                limit 1) g
         where not ff__feeds_open_group(p_flow_id, u.id)
         order by u.id
    loop
        v_reason := 'sibling_quorum_' || r.group_state;
        e := ff__try_open(r.upstream_eid, true);
        if e.execution_id is not null then
            if e.lifecycle_phase <> 'terminal' then
                perform ff__cancel(e, 'override', v_reason, 'engine');
                v_count := v_count + 1;
            end if;
        else
            insert into ff_cancel_dispatch_outbox (target_eid, downstream_eid, flow_id, reason, enqueued_at_ms)
            values (r.upstream_eid, r.downstream_eid, p_flow_id, v_reason, ff__now_ms())
            on conflict do nothing;
        end if;
    end loop;
    return v_count;
end
$$;

-- Whether a member is still needed: one of its applied edges leads to an undecided group. Staged edges do not count.
create or replace function ff__feeds_open_group(p_flow_id uuid, p_upstream uuid) returns boolean
language sql stable
as $$
    select exists (
        select from ff_edge d
         cross join lateral (
               select k.group_state from ff_edge_group k
                where k.flow_id = p_flow_id and k.downstream_eid = d.downstream_eid offset 0) g
         where d.upstream_eid = p_upstream and d.edge_state = 'applied'
           and g.group_state = 'pending')
$$;
