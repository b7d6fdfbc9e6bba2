-- Cancels a flow or escalates its cancellation: writes its state and events. Does not touch members; the caller runs
-- ff__add_cancel_backlog next. Returns cancelled | escalated | already_terminal (nothing changed). The caller holds the
-- flow after this. Errors: invalid_input, flow_not_found.
create or replace function ff__cancel_flow(p_flow_id uuid, p_policy text, p_reason text, p_cancelled_by text)
returns text
language plpgsql volatile
as $$
declare
    v_now bigint;
    v_outcome text;
    f ff_flow_core;
    v_rank jsonb := jsonb '{"cancel_flow_only": 1, "cancel_pending": 2, "cancel_all": 3}';
begin
    if p_policy is null or p_policy not in ('cancel_all', 'cancel_pending', 'cancel_flow_only') then
        perform ff__invalid('p_policy', 'must be cancel_all, cancel_pending or cancel_flow_only');
    end if;
    perform ff__check_text('p_reason', p_reason, 0, 4096);
    perform ff__check_text('p_cancelled_by', p_cancelled_by, 0, 256);
    f := ff__lock_flow(p_flow_id);
    if f.public_flow_state in ('completed', 'failed')
       or f.public_flow_state = 'cancelled'
          and (v_rank -> p_policy)::int <= (v_rank -> f.cancellation_policy)::int then
        return 'already_terminal';
    end if;
    v_now := ff__now_ms();
    v_outcome := case f.public_flow_state when 'cancelled' then 'escalated' else 'cancelled' end;
    update ff_flow_core x
       set public_flow_state = 'cancelled', cancellation_policy = p_policy, cancel_reason = p_reason,
           cancelled_by = p_cancelled_by, terminal_at_ms = v_now, unsuccessful = true, forced_acks = 0,
           last_mutation_at_ms = v_now
     where x.flow_id = p_flow_id;
    if p_policy = 'cancel_flow_only' and f.public_flow_state = 'building' then
        -- The flow never started; with cancel_flow_only its members can now be claimed.
        perform from (select c.execution_id from ff_execution c where c.flow_id = p_flow_id
                       order by c.execution_id for no key update) x;
        perform ff__release_members(p_flow_id, v_now);
    end if;
    perform ff__emit_flow(p_flow_id, 'cancel_requested', v_now, p_reason,
                          jsonb_build_object('cancellation_policy', p_policy, 'cancelled_by', p_cancelled_by,
                                             'escalated', v_outcome = 'escalated'));
    perform ff__emit_flow(p_flow_id, 'flow_cancel_requested', v_now, p_reason,
                          jsonb_build_object('cancellation_policy', p_policy, 'cancelled_by', p_cancelled_by),
                          'operator');
    return v_outcome;
end
$$;

-- Adds the members of a flow that was just cancelled and that have not ended to the backlog, with the time from which
-- the engine ends them. The caller holds the flow.
create or replace function ff__add_cancel_backlog(f ff_flow_core, p_grace_ms bigint) returns void
language plpgsql volatile
as $$
begin
    if f.cancellation_policy = 'cancel_flow_only' then
        return;
    end if;
    insert into ff_cancel_backlog_member (flow_id, execution_id)
    select f.flow_id, c.execution_id from ff_execution c
     where c.flow_id = f.flow_id and c.terminal_at_ms is null order by c.execution_id
    on conflict do nothing;
    insert into ff_cancel_backlog (flow_id, requested_at_ms, requester, reason, cancellation_policy, grace_until_ms)
    select f.flow_id, f.terminal_at_ms, f.cancelled_by, f.cancel_reason, f.cancellation_policy,
           ff__time_after(f.terminal_at_ms, p_grace_ms)
     where exists (select from ff_cancel_backlog_member m where m.flow_id = f.flow_id)
    on conflict on constraint ff_cancel_backlog_pkey do update
       set requested_at_ms = excluded.requested_at_ms, requester = excluded.requester, reason = excluded.reason,
           cancellation_policy = excluded.cancellation_policy, grace_until_ms = excluded.grace_until_ms;
end
$$;

-- Ends members of a cancelled flow if its policy covers their current state; returns how many. The caller has locked
-- the flow and the members. Set-based: one set for each way in which their attempts and leases end.
create or replace function ff__cancel_members(f ff_flow_core, p_ids uuid[]) returns int
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_count int := 0;
    v_id uuid;
    r record;
begin
    for v_id in
        select c.execution_id from unnest(p_ids) u(id) join ff_execution c on c.execution_id = any (array[u.id])
         where (c.open_waitpoints > 0 or c.stream_open) and c.terminal_at_ms is null
           and ff__is_cancel_covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
         order by c.execution_id
    loop
        perform ff__close_attempt_resources(ff__open(v_id), 'attempt_ended', ff__close_reason('cancelled'));
    end loop;
    for r in
        select array_agg(c.execution_id order by c.execution_id) as members,
               c.state in ('leased', 'lease_expired', 'lease_revoked') as leased,
               w.attempt_state in ('running_attempt', 'attempt_interrupted') as open,
               case when c.state = 'leased' then l.event end as lease_event,
               case when c.state <> 'leased' then null when l.event = 'released' then 'cancel'
                    when c.deadline_at_ms <= v_now then 'execution_deadline'
                    when c.attempt_timeout_at_ms <= v_now then 'attempt_timeout' else 'ttl' end as lease_reason
          from unnest(p_ids) u(id)
          join ff_execution c on c.execution_id = any (array[u.id])
          join ff_state_word w on w.state = c.state
         cross join lateral (
               select case when c.lease_expires_at_ms > v_now then 'released' else 'expired' end as event) l
         where c.terminal_at_ms is null
           and ff__is_cancel_covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
         group by 2, 3, 4, 5
    loop
        v_count := v_count + cardinality(ff__end(
            r.members,
            case when r.open then (case when r.leased then 'override' end, 'cancelled', f.cancel_reason, 'cancelled',
                                   'cancelled', null, r.lease_event, r.lease_reason)::ff_ending end,
            'cancelled', v_now, f.cancel_reason, null, f.cancelled_by, p_defer_ends => true));
    end loop;
    return v_count;
end
$$;

-- Checks the attributes of a flow. Errors: invalid_input, invalid_tag_key.
create or replace function ff__check_flow(p_flow_kind text, p_namespace text, p_tags jsonb) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_flow_kind', p_flow_kind, 1, 128);
    perform ff__check_text('p_namespace', p_namespace, 1, 64);
    perform ff__check_tags('p_tags', p_tags);
end
$$;

-- Raises flow_conflict: the id belongs to another flow.
create or replace function ff__raise_flow_conflict(p_flow_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('flow_conflict', 'the flow id is taken',
                      (select jsonb_build_object('flow_id', f.flow_id, 'flow_kind', f.flow_kind,
                                                 'namespace', f.namespace)
                         from ff_flow_core f where f.flow_id = p_flow_id));
end
$$;

-- Inserts a new flow and its event; returns NULL if the id is taken. Waits for a concurrent insert of the same id.
create or replace function ff__insert_flow(
    p_flow_id uuid, p_flow_kind text, p_namespace text, p_state text, p_tags jsonb
) returns ff_flow_core
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    f ff_flow_core;
begin
    insert into ff_flow_core (
        flow_id, partition_key, flow_kind, namespace, public_flow_state, tags, created_at_ms, last_mutation_at_ms)
    values (p_flow_id, ff__partition(p_flow_id), p_flow_kind, p_namespace, p_state, p_tags, v_now, v_now)
    on conflict do nothing
    returning * into f;
    if f.flow_id is not null then
        perform ff__emit_flow(p_flow_id, 'created', v_now);
    end if;
    return f;
end
$$;

-- Queues the members of a flow that leaves the building state, except members reserved by a grant. The caller has
-- locked them. Writes all live members: an operation with an older snapshot, which cannot see that the flow has
-- started, then gets a serialization failure instead of leaving its member out of the queue.
create or replace function ff__release_members(p_flow_id uuid, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    update ff_execution c
       set ready_in = case when not c.granted and c.state in ('ready', 'ready_retry', 'ready_replay', 'ready_resume',
                                                              'lease_expired', 'lease_revoked')
                           then ff__ready_queue(c.queue_id, c.limited) end,
           last_mutation_at_ms = p_now_ms
     where c.flow_id = p_flow_id and c.terminal_at_ms is null;
    perform ff__notify_member_lanes(p_flow_id);
end
$$;

-- Notifies the lanes on which the flow has claimable members.
create or replace function ff__notify_member_lanes(p_flow_id uuid) returns void
language plpgsql volatile
as $$
declare
    v_lane text;
begin
    for v_lane in
        select distinct c.lane_id from ff_execution c
         where c.flow_id = p_flow_id and c.ready_in is not null order by c.lane_id
    loop
        perform ff__notify_lane(v_lane);
    end loop;
end
$$;

-- Counts the members of a flow by public state and derives the state of the flow: completed or failed once all have
-- ended, running while one is active, open while one is claimable, else blocked.
create or replace function ff__flow_counts(p_flow_id uuid) returns ff_flow_summary
language plpgsql stable
as $$
declare
    s ff_flow_summary;
begin
    select p_flow_id as flow_id, 0 as projected_at_ms, count(*)::int as total_members,
           count(*) filter (where w.public_state = 'waiting')::int as members_waiting,
           count(*) filter (where w.public_state = 'delayed')::int as members_delayed,
           count(*) filter (where w.public_state = 'rate_limited')::int as members_rate_limited,
           count(*) filter (where w.public_state = 'waiting_children')::int as members_waiting_children,
           count(*) filter (where w.public_state = 'active')::int as members_active,
           count(*) filter (where w.public_state = 'suspended')::int as members_suspended,
           count(*) filter (where w.public_state = 'resumable')::int as members_resumable,
           count(*) filter (where w.public_state = 'completed')::int as members_completed,
           count(*) filter (where w.public_state = 'failed')::int as members_failed,
           count(*) filter (where w.public_state = 'cancelled')::int as members_cancelled,
           count(*) filter (where w.public_state = 'expired')::int as members_expired,
           count(*) filter (where w.public_state = 'skipped')::int as members_skipped,
           '' as derived_state, false as final
      into s
      from ff_execution c join ff_state_word w on w.state = c.state where c.flow_id = p_flow_id;
    s.derived_state := case
        when s.total_members = 0 then 'open'
        when s.members_completed + s.members_failed + s.members_cancelled + s.members_expired + s.members_skipped
             = s.total_members then case when ff__flow_failed(p_flow_id) then 'failed' else 'completed' end
        when s.members_active > 0 then 'running'
        when s.members_waiting + s.members_resumable > 0 then 'open'
        else 'blocked' end;
    return s;
end
$$;
