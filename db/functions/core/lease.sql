-- Builds the end of a lease: for the pause of its attempt, or as part of ff__end_attempt.
create or replace function ff__end_lease(
    e ff_exec, p_op text, p_lease_reason text, p_timer text default null, p_release_detail jsonb default null
) returns ff_ending
language plpgsql stable
as $$
declare
    a ff_ending;
begin
    if e.lease_id is not null then
        a.op := p_op;
        a.detail := p_release_detail;
    end if;
    if e.ownership_state = 'leased' then
        if p_timer is null and e.lease_expires_at_ms > e.now_ms then
            a.lease_event := 'released';
            a.lease_reason := p_lease_reason;
        else
            a.lease_event := 'expired';
            a.lease_reason := coalesce(p_timer, ff__lease_end_reason(e));
        end if;
    end if;
    return a;
end
$$;

-- The reason why a lease ended: the timer that bounds it.
create or replace function ff__lease_end_reason(e ff_exec) returns text
language plpgsql immutable
as $$
begin
    return case when e.deadline_at_ms <= e.now_ms then 'execution_deadline'
                when e.attempt_timeout_at_ms <= e.now_ms then 'attempt_timeout'
                else 'ttl' end;
end
$$;

-- Leases locked, claimable executions as a set. A ready execution starts an attempt or continues the paused one; for an
-- expired or revoked lease, the interrupted attempt ends and the next one starts (a reclaim). A superseded attempt
-- moves to ff_attempt_past; grants are consumed, and a reserved slot passes to the lease. The id of an attempt is the
-- id of its first lease. p_fresh: all of them start their first attempt, without grant or limits. Returns the rows of a
-- claim, in the order of p_ids.
create or replace function ff__lease(
    p_ids uuid[], p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint, p_now_ms bigint,
    p_fresh boolean default false
) returns setof ff_claim_row
language plpgsql volatile
as $$
declare
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_seed text := ff__mint_id(p_now_ms, 0)::text;
    v_leases uuid[] := array(select ff__batch_id(v_seed, u.n::int, ff__partition(u.id))
                               from unnest(p_ids) with ordinality u(id, n) order by u.n);
    v_resumed boolean[];
    v_reclaimed uuid[];
    v_again boolean := false;
    v_granted boolean := false;
    v_limited boolean := false;
    v_id uuid;
    e ff_exec;
    a ff_ending;
begin
    if not p_fresh then
        select array_agg(c.state in ('ready_resume', 'delayed_resume', 'resume_delay_resume') order by u.n),
               array_agg(u.id order by u.n) filter (where c.state in ('leased', 'lease_expired', 'lease_revoked')),
               bool_or(c.attempt_index is not null), bool_or(c.granted), bool_or(c.limited)
          into v_resumed, v_reclaimed, v_again, v_granted, v_limited
          from unnest(p_ids) with ordinality u(id, n) join ff_execution c on c.execution_id = any (array[u.id]);
    end if;
    if v_reclaimed is not null then
        foreach v_id in array v_reclaimed loop
            e := ff__open(v_id);
            e.now_ms := p_now_ms; -- the next lease begins when this one ends, not before
            a := ff__end_attempt(e, 'reclaim', 'interrupted_reclaimed', null);
            if a.lease_event is not null then
                perform ff__emit(e, 'lease', a.lease_event, a.lease_reason);
            end if;
        end loop;
    end if;
    if v_again then
        insert into ff_attempt_past (
            execution_id, attempt_index, attempt_id, lease_id, lease_epoch, started_at_ms, resumed_at_ms,
            suspended_at_ms, ended_at_ms, progress_updated_at_ms, release_lease_id, release_lease_epoch,
            release_at_ms, progress_pct, attempt_type, worker_id, worker_instance_id, outcome, failure_reason,
            failure_category, classification, result, result_encoding, progress_message, release_op, release_detail)
        select c.execution_id, c.attempt_index, c.attempt_id, c.lease_id, c.lease_epoch, c.attempt_started_at_ms,
               c.attempt_resumed_at_ms, c.attempt_suspended_at_ms, coalesce(c.attempt_ended_at_ms, p_now_ms),
               c.progress_updated_at_ms,
               case when x.reclaimed then c.lease_id
                    when c.release_op is not null then coalesce(c.release_lease_id, c.lease_id) end,
               case when x.reclaimed then c.lease_epoch
                    when c.release_op is not null then coalesce(c.release_lease_epoch, c.lease_epoch) end,
               case when x.reclaimed then p_now_ms else c.release_at_ms end, c.progress_pct, c.attempt_type,
               c.worker_id, c.worker_instance_id, coalesce(c.attempt_outcome, 'interrupted_reclaimed'),
               case when c.state = 'lease_revoked' then 'lease_revoked' when x.reclaimed then 'lease_expired'
                    else c.attempt_failure_reason end,
               case when x.reclaimed then 'infra_crash' else c.attempt_failure_category end,
               case when x.reclaimed then 'infra_crash' else c.attempt_classification end,
               case when not x.reclaimed then c.result end, case when not x.reclaimed then c.result_encoding end,
               c.progress_message,
               case when x.reclaimed then 'reclaim' else c.release_op end,
               case when not x.reclaimed then c.release_detail end
          from unnest(p_ids) u(id)
          join ff_execution c on c.execution_id = any (array[u.id])
         cross join lateral (select c.state in ('leased', 'lease_expired', 'lease_revoked') as reclaimed) x
         where c.attempt_index is not null
           and c.state not in ('ready_resume', 'delayed_resume', 'resume_delay_resume');
    end if;
    return query
        with leased as (
            update ff_execution c set
                state = 'leased', ready_in = null,
                due_at_ms = least(p_now_ms + p_lease_ttl_ms, c.deadline_at_ms,
                                  p_now_ms + case when u.resumed then c.attempt_remaining_ms
                                                  else c.attempt_timeout_ms end),
                lease_expires_at_ms = least(p_now_ms + p_lease_ttl_ms, c.deadline_at_ms, p_now_ms
                                            + case when u.resumed then c.attempt_remaining_ms
                                                   else c.attempt_timeout_ms end),
                attempt_timeout_at_ms = ff__time_after(p_now_ms, case when u.resumed then c.attempt_remaining_ms
                                                                      else c.attempt_timeout_ms end),
                lease_id = u.lease_id, lease_epoch = c.lease_epoch + 1,
                lease_ttl_ms = p_lease_ttl_ms, lease_acquired_at_ms = p_now_ms, lease_renewed_at_ms = null,
                lease_revoke_reason = null, worker_id = p_worker_id, worker_instance_id = p_worker_instance_id,
                attempt_id = case when u.resumed then c.attempt_id else u.lease_id end,
                attempt_index = case when u.resumed then c.attempt_index else c.total_attempt_count end,
                total_attempt_count = c.total_attempt_count + case when u.resumed then 0 else 1 end,
                attempt_type = case when u.resumed then c.attempt_type
                                    when c.state in ('ready', 'delayed') then 'initial'
                                    when c.state in ('ready_retry', 'backoff_retry') then 'retry'
                                    when c.state in ('ready_replay', 'delayed_replay') then 'replay' else 'reclaim' end,
                lease_reclaim_count = c.lease_reclaim_count
                                      + (c.state in ('leased', 'lease_expired', 'lease_revoked'))::int,
                attempt_started_at_ms = case when u.resumed then c.attempt_started_at_ms else p_now_ms end,
                attempt_resumed_at_ms = case when u.resumed then p_now_ms end,
                attempt_suspended_at_ms = case when u.resumed then c.attempt_suspended_at_ms end,
                attempt_ended_at_ms = null, attempt_outcome = null, attempt_failure_reason = null,
                attempt_failure_category = null, attempt_classification = null, result = null, result_encoding = null,
                progress_pct = case when u.resumed then c.progress_pct end,
                progress_message = case when u.resumed then c.progress_message end,
                progress_updated_at_ms = case when u.resumed then c.progress_updated_at_ms end,
                release_op = case when u.resumed then c.release_op end,
                release_at_ms = case when u.resumed then c.release_at_ms end,
                release_detail = case when u.resumed then c.release_detail end,
                release_lease_id = case when u.resumed then c.lease_id end,
                release_lease_epoch = case when u.resumed then c.lease_epoch end,
                attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null, blocking_detail = null,
                blocked_budget_id = null, failure_reason = null, failure_category = null, granted = false,
                started_at_ms = coalesce(c.started_at_ms, p_now_ms), last_transition_at_ms = p_now_ms,
                last_mutation_at_ms = p_now_ms, last_event_ord = greatest(v_xid, c.last_event_ord)
              from unnest(p_ids, v_leases, v_resumed) with ordinality u(id, lease_id, resumed, n)
             where c.execution_id = any (array[u.id])
            returning u.n, case when u.resumed then 'resumed' when c.attempt_type = 'reclaim' then 'reclaimed'
                                else 'fresh' end as kind,
                      c.partition_key, c.execution_id, c.attempt_index, c.lease_id, c.lease_epoch, c.attempt_id,
                      c.attempt_type, c.namespace, c.lane_id, c.flow_id, c.execution_kind, c.payload,
                      c.payload_encoding, c.tags, c.priority, c.lease_expires_at_ms, c.attempt_timeout_at_ms,
                      c.deadline_at_ms, c.last_event_ord
        ), emitted as (
            select ff__emit_many('lease', case l.kind when 'reclaimed' then 'reclaimed' else 'acquired' end, null,
                                 p_now_ms, l.last_event_ord, array_agg(l.execution_id), array_agg(l.attempt_index),
                                 array_agg(l.flow_id), array_agg(l.lane_id), array_agg(l.namespace),
                                 array_agg(l.tags), array_agg(l.lease_id), array_agg(l.lease_epoch), p_worker_id,
                                 p_worker_instance_id)
              from leased l
             group by l.last_event_ord, l.kind
        )
        select ff__encode_handle(l.partition_key, l.execution_id, l.attempt_index, l.lease_id, l.lease_epoch,
                                 l.attempt_id),
               l.kind, ff__wire_id(l.partition_key, l.execution_id), l.namespace, l.lane_id, l.flow_id,
               l.execution_kind, l.payload, l.payload_encoding, coalesce(l.tags, '{}'), l.priority, l.attempt_index,
               l.attempt_id, l.attempt_type, l.lease_id, l.lease_epoch, l.lease_expires_at_ms,
               l.attempt_timeout_at_ms, l.deadline_at_ms
          from leased l
         where (select count(*) from emitted) > 0 -- the events are written first
         order by l.n;
    if v_granted then
        delete from ff_claim_grant g where g.execution_id = any (p_ids);
    end if;
    if v_limited then
        delete from ff_quota_reservation v
         using ff_execution c
         where c.execution_id = any (p_ids) and v.execution_id = c.execution_id
           and v.quota_policy_id = c.quota_policy_id;
    end if;
end
$$;

-- Marks a lease as expired: the row becomes reclaimable and enters the ready index. Keeps the fence, so that calls by
-- the holder fail with lease_expired.
create or replace function ff__mark_expired(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    e := ff__emit(e, 'lease', 'expired', 'ttl');
    update ff_execution c set
        state = 'lease_expired', ready_in = case when not c.granted and not ff__flow_building(c.flow_id)
                                               then ff__ready_queue(c.queue_id, c.limited) end,
        due_at_ms = (select g.expires_at_ms from ff_claim_grant g where c.granted and g.execution_id = c.execution_id),
        last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    perform ff__notify_lane(e.lane_id);
    if e.limited then
        perform ff__free_slot(e, false);
    end if;
end
$$;

-- Whether an execution can be reclaimed: its lease has expired, marked or not, or was revoked.
create or replace function ff__reclaimable(e ff_exec) returns boolean
language plpgsql immutable
as $$
begin
    return e.lifecycle_phase = 'active' and (e.ownership_state <> 'leased' or e.lease_expires_at_ms <= e.now_ms);
end
$$;

-- Revokes a live lease: the row becomes claimable at once. Keeps the fence, so that calls by the holder fail with
-- lease_revoked; the next lease raises the epoch.
create or replace function ff__revoke(e ff_exec, p_reason text) returns void
language plpgsql volatile
as $$
begin
    e := ff__emit(e, 'lease', 'revoked', p_reason);
    update ff_execution c set
        state = 'lease_revoked', due_at_ms = null,
        ready_in = case when not ff__flow_building(c.flow_id) then ff__ready_queue(c.queue_id, c.limited) end,
        lease_revoke_reason = p_reason, last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms,
        last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    perform ff__notify_lane(e.lane_id);
    if e.limited then
        perform ff__free_slot(e, false);
    end if;
end
$$;
