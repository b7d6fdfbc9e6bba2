-- Ends an execution as cancelled, from any state. p_op: cancel by the lease holder, override otherwise.
create or replace function ff__cancel(e ff_exec, p_op text, p_reason text, p_by text) returns void
language plpgsql volatile
as $$
declare
    a ff_ending;
begin
    if e.current_attempt_id is not null then
        a := ff__end_attempt(e, p_op, 'cancelled', 'cancel', null, p_reason, 'cancelled', 'cancelled');
    end if;
    perform ff__terminate(e, a, 'cancelled', p_reason, null, p_by);
end
$$;

-- The only transition into terminal, for a set: executions that the caller has locked, or with p_handles those whose
-- fences hold and whose attempts have no open resources. a: how an open attempt ends (NULL if none is open); p_results:
-- the results of the attempts. One update, and one event per execution (which includes the end of the lease). Deletes
-- grants, frees slots, dispatches the ends of members in their flows, and cancels the children of executions that did
-- not succeed. Returns the ids of the executions that ended.
-- Joins use "= any (array[..])": plans are cached per session, possibly while the tables are small; this form can be an
-- index condition, but not a merge, hash or sort.
create or replace function ff__end(
    p_ids uuid[],
    a ff_ending,
    p_outcome text,
    p_now_ms bigint,
    p_reason text default null,
    p_category text default null,
    p_by text default null,
    p_handles text[] default null,
    p_results bytea[] default null,
    p_result_encoding text default null,
    p_defer_ends boolean default false
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_state ff_state := (case p_outcome when 'success' then 'completed' else p_outcome end)::ff_state;
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_failure boolean := p_outcome in ('failed', 'expired', 'skipped');
    v_cancelled boolean := p_outcome = 'cancelled';
    v_attempt boolean := a.outcome is not null;
    v_release boolean := a.op is not null;
    v_lease boolean := a.lease_event is not null;
    v_ids uuid[] := '{}'::uuid[];
    v_events bigint[];
    v_limited boolean := false;
    r record;
begin
    for r in
        with ended as (
            update ff_execution c set
                state = v_state, ready_in = null, due_at_ms = null, terminal_at_ms = p_now_ms,
                attempt_outcome = case when v_attempt then a.outcome else c.attempt_outcome end,
                attempt_ended_at_ms = case when v_attempt then p_now_ms else c.attempt_ended_at_ms end,
                attempt_failure_reason = case when v_attempt then a.failure_reason else c.attempt_failure_reason end,
                attempt_failure_category = case when v_attempt then a.failure_category
                                                else c.attempt_failure_category end,
                attempt_classification = case when v_attempt then a.classification else c.attempt_classification end,
                result = case when v_release then x.result else c.result end,
                result_encoding = case when v_release then p_result_encoding else c.result_encoding end,
                release_op = case when v_release then a.op else c.release_op end,
                release_at_ms = case when v_release then p_now_ms else c.release_at_ms end,
                release_detail = case when v_release then a.detail else c.release_detail end,
                release_lease_id = case when not v_release then c.release_lease_id end,
                release_lease_epoch = case when not v_release then c.release_lease_epoch end,
                failure_reason = case when v_failure then p_reason end,
                failure_category = case when v_failure then p_category end,
                cancellation_reason = case when v_cancelled then p_reason end,
                cancelled_by = case when v_cancelled then p_by end,
                blocking_detail = null, blocked_budget_id = null, current_suspension_id = null,
                current_waitpoint_id = null,
                attempt_timeout_at_ms = null, attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null,
                granted = false, last_transition_at_ms = p_now_ms, last_mutation_at_ms = p_now_ms,
                last_event_ord = greatest(v_xid, c.last_event_ord)
              from unnest(p_ids, p_handles, p_results) x(id, handle, result)
             where c.execution_id = any (array[x.id])
               and (x.handle is null
                    or ff__fence_holds(c, p_now_ms, x.handle) and c.open_waitpoints = 0 and not c.stream_open)
            returning c.execution_id, c.attempt_index, c.flow_id, c.lane_id, c.namespace, c.tags, c.lease_id,
                      c.lease_epoch, c.worker_id, c.worker_instance_id, c.limited, c.last_event_ord
        )
        select d.last_event_ord as ord, d.worker_id, d.worker_instance_id, bool_or(d.limited) as limited,
               bool_or(d.flow_id is not null) as members, array_agg(d.execution_id) as ids,
               array_agg(d.attempt_index) as attempts, array_agg(d.flow_id) as flows, array_agg(d.lane_id) as lanes,
               array_agg(d.namespace) as namespaces, array_agg(d.tags) as tags, array_agg(d.lease_id) as leases,
               array_agg(d.lease_epoch) as epochs
          from ended d
         group by d.last_event_ord, d.worker_id, d.worker_instance_id
    loop
        v_events := ff__emit_many(
            'completion', p_outcome, p_reason, p_now_ms, r.ord, r.ids, r.attempts, r.flows, r.lanes, r.namespaces,
            r.tags, case when v_lease then r.leases end, case when v_lease then r.epochs end,
            case when v_lease then r.worker_id end, case when v_lease then r.worker_instance_id end,
            a.lease_event, a.lease_reason, r.members);
        if r.members then
            perform ff__record_member_ends(r.ids, v_events, p_outcome, p_now_ms, p_defer_ends);
        end if;
        v_limited := v_limited or r.limited;
        v_ids := v_ids || r.ids;
    end loop;
    if p_handles is null then -- under a live lease there is no grant
        delete from ff_claim_grant g where g.execution_id = any (v_ids);
    end if;
    if v_limited then
        perform ff__free_slots(v_ids, p_now_ms, v_lease, true);
    end if;
    if p_outcome <> 'success' then
        perform ff__cancel_children(v_ids, p_defer_ends);
    end if;
    return v_ids;
end
$$;

-- Records ends of flow members in the work list and, unless p_defer_ends, dispatches it in each of their flows that is
-- not locked. Never waits: the transaction that holds the flow, or the next claim that finds no work, dispatches the
-- rest. An end is recorded even if the completion event is muted: it then takes an event id of its own.
create or replace function ff__record_member_ends(
    p_ids uuid[], p_event_ids bigint[], p_outcome text, p_now_ms bigint, p_defer_ends boolean
)
returns void
language plpgsql volatile
as $$
declare
    v_flows uuid[];
    v_flow uuid;
begin
    with noted as (
        insert into ff_flow_dispatch (event_id, flow_id, execution_id, outcome, created_at_ms, next_dispatch_at_ms)
        select coalesce(u.event_id, nextval('ff_event_id_seq')), c.flow_id, c.execution_id, p_outcome, p_now_ms,
               p_now_ms
          from unnest(p_ids, p_event_ids) with ordinality u(id, event_id, n)
          join ff_execution c on c.execution_id = any (array[u.id]) and c.flow_id is not null
         order by u.n
        returning flow_id
    )
    select array_agg(distinct d.flow_id) into v_flows from noted d;
    if not p_defer_ends then
        foreach v_flow in array v_flows loop
            if ff__try_flow(v_flow) then
                perform ff__dispatch_flow(v_flow);
            end if;
        end loop;
    end if;
end
$$;

-- Cancels the attached descendants of executions that ended other than by success and that the caller has locked, if
-- they are few (100 rows of work in all) and not locked. Maintenance does the rest, or all of it with p_defer_ends. A
-- snapshot older than the lock may not show all children: maintenance checks again.
create or replace function ff__cancel_children(p_ids uuid[], p_defer_ends boolean) returns void
language plpgsql volatile
as $$
declare
    v_old boolean := current_setting('transaction_isolation') <> 'read committed';
    v_parents uuid[] := array(
        select u.id from unnest(p_ids) u(id)
         -- Not EXISTS: PostgreSQL may hash all of ff_child for it.
         where v_old or (select true from ff_child k where k.parent_id = u.id and not k.detached limit 1));
begin
    if v_parents = '{}' then
        return;
    end if;
    insert into ff_child_work (parent_id, action) select u.id, 'check' from unnest(v_parents) u(id);
    if not p_defer_ends then
        perform ff__drain_children(100, v_parents);
        if v_old then
            insert into ff_child_work (parent_id, action) select u.id, 'check' from unnest(v_parents) u(id);
        end if;
    end if;
end
$$;

-- ff__end for one opened execution. Returns the public state.
create or replace function ff__terminate(
    e ff_exec, a ff_ending, p_outcome text, p_reason text default null, p_category text default null,
    p_by text default null, p_result bytea default null, p_result_encoding text default null
) returns text
language plpgsql volatile
as $$
begin
    perform ff__end(array[e.execution_id], a, p_outcome, e.now_ms, p_reason, p_category, p_by, null, array[p_result],
                    p_result_encoding, e.defer_ends);
    return case p_outcome when 'success' then 'completed' else p_outcome end;
end
$$;

-- Builds the end of an attempt, which ff__end, ff__settle or ff__lease writes: closes the attempt's open resources with
-- p_close_reason, and gives its lease, if it has no ending event yet, one: released with p_lease_reason, or expired if
-- p_timer names the timer that ended it or the lease has run out. p_op is the operation that a replay must match:
-- complete | fail | cancel by the lease holder, override | expire | reclaim otherwise. A paused attempt keeps the
-- record of its pause, which its holder may still replay.
create or replace function ff__end_attempt(
    e ff_exec,
    p_op text,
    p_outcome text,
    p_lease_reason text,
    p_timer text default null,
    p_failure_reason text default null,
    p_failure_category text default null,
    p_classification text default null,
    p_release_detail jsonb default null,
    p_close_reason text default 'attempt_ended'
) returns ff_ending
language plpgsql volatile
as $$
declare
    a ff_ending;
begin
    if e.open_resources then
        perform ff__close_attempt_resources(
            e, p_close_reason, case when p_close_reason like 'timed_out%' then 'suspension_timeout'
                                    else ff__close_reason(p_outcome) end);
    end if;
    a := ff__end_lease(e, p_op, p_lease_reason, p_timer, p_release_detail);
    a.outcome := p_outcome;
    a.failure_reason := p_failure_reason;
    a.failure_category := p_failure_category;
    a.classification := p_classification;
    return a;
end
$$;

-- Closes the open resources of an attempt at its end: its suspension and waitpoints with p_close_reason, its stream
-- with p_stream_reason. Called by ff__end_attempt if e.open_resources is set. Returns e without open resources.
create or replace function ff__close_attempt_resources(e ff_exec, p_close_reason text, p_stream_reason text)
returns ff_exec
language plpgsql volatile
as $$
declare
    v_waits boolean;
    v_stream boolean;
begin
    select c.open_waitpoints > 0, c.stream_open into v_waits, v_stream from ff_exec_core c
     where c.execution_id = e.execution_id;
    if v_waits then
        perform ff__close_suspension_rows(e, p_close_reason);
    end if;
    if v_stream then
        perform ff__close_stream(e, p_stream_reason);
    end if;
    e.open_resources := false;
    return e;
end
$$;

-- Closes the open suspension of an execution and all its waitpoints, and discards the signals they hold. Requires the
-- execution's lock.
create or replace function ff__close_suspension_rows(e ff_exec, p_close_reason text) returns void
language plpgsql volatile
as $$
begin
    update ff_suspension s set closed_at_ms = e.now_ms, close_reason = p_close_reason
     where s.execution_id = e.execution_id and s.closed_at_ms is null;
    with closed as (
        update ff_waitpoint w set state = 'closed', closed_at_ms = e.now_ms, close_reason = p_close_reason
         where w.execution_id = e.execution_id and w.state in ('pending', 'active')
        returning w.waitpoint_id)
    update ff_signal s set discarded = true
      from closed x
     where s.execution_id = e.execution_id and s.waitpoint_id = x.waitpoint_id
       and s.consumed_by is null and not s.discarded;
    update ff_execution c set open_waitpoints = 0, current_suspension_id = null, current_waitpoint_id = null
     where c.execution_id = e.execution_id;
end
$$;

-- Closes the stream of the current attempt, once, and notifies its watchers. Requires the execution's lock; locks the
-- stream's meta row. No effect without a stream or if it is closed.
create or replace function ff__close_stream(e ff_exec, p_reason text) returns void
language plpgsql volatile
as $$
declare
    v_watch_until_ms bigint;
begin
    update ff_stream_meta m set closed_at_ms = e.now_ms, closed_reason = p_reason
     where m.execution_id = e.execution_id and m.attempt_index = e.current_attempt_index and m.closed_at_ms is null
    returning m.watch_until_ms into v_watch_until_ms;
    if v_watch_until_ms > e.now_ms then
        perform ff__notify_stream(e.execution_id, e.current_attempt_index);
    end if;
    update ff_execution c set stream_open = false where c.execution_id = e.execution_id and c.stream_open;
end
$$;

-- The reason for closing an attempt's stream, from the attempt's outcome.
create or replace function ff__close_reason(p_outcome text) returns text
language sql immutable parallel safe
as $$
    select case p_outcome
        when 'success' then 'attempt_success' when 'failure' then 'attempt_failure'
        when 'cancelled' then 'attempt_cancelled' when 'expired' then 'expired'
        when 'interrupted_reclaimed' then 'reclaimed' when 'skipped' then 'dependency_impossible' end
$$;
