-- Cancels a flow, or does so more strongly: its state and its events. Touches no member; ff__owe_members is to follow.
-- Returns cancelled | escalated | already_terminal (nothing changed). The caller holds the flow after this. Errors:
-- invalid_input, flow_not_found.
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
           cancelled_by = p_cancelled_by, terminal_at_ms = v_now, unsuccessful = true, forced_acks = 0, last_mutation_at_ms = v_now
     where x.flow_id = p_flow_id;
    if p_policy = 'cancel_flow_only' and f.public_flow_state = 'building' then
        -- It never started, and now its members run on as they are.
        perform from (select c.execution_id from ff_execution c where c.flow_id = p_flow_id
                       order by c.execution_id for no key update) x;
        perform ff__release_members(p_flow_id, v_now);
    end if;
    perform ff__emit_flow(p_flow_id, 'cancel_requested', v_now, p_reason,
                          jsonb_build_object('cancellation_policy', p_policy, 'cancelled_by', p_cancelled_by,
                                             'escalated', v_outcome = 'escalated'));
    perform ff__emit_flow(p_flow_id, 'flow_cancel_requested', v_now, p_reason,
                          jsonb_build_object('cancellation_policy', p_policy, 'cancelled_by', p_cancelled_by), 'operator');
    return v_outcome;
end
$$;

-- The backlog of a flow that was just cancelled: its members that have not ended, and from when on the engine ends them.
-- The caller holds the flow.
create or replace function ff__owe_members(f ff_flow_core, p_grace_ms bigint) returns void
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

-- Ends members of a cancelled flow that the caller has locked, together with the flow, if its policy covers them as they are
-- now; how many. As sets: one for each way in which their attempts and leases end.
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
           and ff__covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
         order by c.execution_id
    loop
        perform ff__tie_loose_ends(ff__open(v_id), 'attempt_ended', ff__close_reason('cancelled'));
    end loop;
    for r in
        select array_agg((c.execution_id, null, null, null, null, null)::ff_fence order by c.execution_id) as members,
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
           and ff__covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
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

-- Whether the cancellation of a flow covers a member that has not ended: cancel_all every one, cancel_pending all but
-- those under a live lease.
create or replace function ff__covered(p_policy text, p_state ff_state, p_lease_expires_at_ms bigint, p_now_ms bigint)
returns boolean
language sql immutable parallel safe
as $$
    select p_policy = 'cancel_all'
        or p_policy = 'cancel_pending' and not (p_state = 'leased' and p_lease_expires_at_ms > p_now_ms)
$$;
