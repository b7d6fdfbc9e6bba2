-- Leases executions that are locked and claimable, as a set: what is ready starts an attempt, or goes on with the paused
-- one; work of a lapsed or revoked lease ends the interrupted attempt and starts the next (a reclaim). An attempt that another
-- one follows goes to ff_attempt_past; grants are used up, and a slot that was reserved becomes the lease's.
-- Returns what a claim answers, in the order of p_ids.
create or replace function ff__lease(
    p_ids uuid[], p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint, p_now_ms bigint
) returns setof ff_claim_row
language plpgsql volatile
as $$
declare
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_reclaimed uuid[];
    v_lapsed uuid[];
    v_again boolean;
    v_granted boolean;
    v_limited boolean;
    v_id uuid;
begin
    select bool_or(c.attempt_index is not null), bool_or(c.granted), bool_or(c.limited),
           array_agg(u.id order by u.n) filter (where c.state in ('leased', 'lease_expired', 'lease_revoked')),
           array_agg(u.id order by u.n) filter (where c.state = 'leased')
      into v_again, v_granted, v_limited, v_reclaimed, v_lapsed
      from unnest(p_ids) with ordinality u(id, n) join ff_execution c on c.execution_id = any (array[u.id]);
    if v_reclaimed is not null then
        foreach v_id in array v_reclaimed loop
            perform ff__end_attempt(ff__open(v_id), 'reclaim', 'interrupted_reclaimed', null);
        end loop;
        if v_lapsed is not null then
            perform ff__emit_executions(array[x.id], 'expired', x.reason, null, null, p_now_ms)
               from (select u.id, case when c.deadline_at_ms <= p_now_ms then 'execution_deadline'
                                       when c.attempt_timeout_at_ms <= p_now_ms then 'attempt_timeout'
                                       else 'ttl' end as reason
                       from unnest(v_lapsed) u(id) join ff_execution c on c.execution_id = any (array[u.id])) x;
        end if;
    end if;
    if v_again then
        insert into ff_attempt_past (
            execution_id, attempt_index, attempt_id, lease_id, lease_epoch, started_at_ms, resumed_at_ms, suspended_at_ms,
            ended_at_ms, progress_updated_at_ms, release_lease_id, release_lease_epoch, release_at_ms, progress_pct,
            attempt_type, worker_id, worker_instance_id, outcome, failure_reason, failure_category, classification, result,
            result_encoding, progress_message, release_op, release_detail)
        select c.execution_id, c.attempt_index, c.attempt_id, c.lease_id, c.lease_epoch, c.attempt_started_at_ms,
               c.attempt_resumed_at_ms, c.attempt_suspended_at_ms, coalesce(c.attempt_ended_at_ms, p_now_ms),
               c.progress_updated_at_ms,
               case when x.reclaimed then c.lease_id when c.release_op is not null then coalesce(c.release_lease_id, c.lease_id)
                    end,
               case when x.reclaimed then c.lease_epoch
                    when c.release_op is not null then coalesce(c.release_lease_epoch, c.lease_epoch) end,
               case when x.reclaimed then p_now_ms else c.release_at_ms end, c.progress_pct, c.attempt_type, c.worker_id,
               c.worker_instance_id, coalesce(c.attempt_outcome, 'interrupted_reclaimed'),
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
            due_at_ms = least(p_now_ms + p_lease_ttl_ms, t.timeout_at_ms, c.deadline_at_ms),
            lease_expires_at_ms = least(p_now_ms + p_lease_ttl_ms, t.timeout_at_ms, c.deadline_at_ms),
            attempt_timeout_at_ms = t.timeout_at_ms,
            lease_id = ff__mint_id(p_now_ms, c.partition_key), lease_epoch = c.lease_epoch + 1,
            lease_ttl_ms = p_lease_ttl_ms, lease_acquired_at_ms = p_now_ms, lease_renewed_at_ms = null,
            lease_revoke_reason = null, worker_id = p_worker_id, worker_instance_id = p_worker_instance_id,
            attempt_id = case when t.resumed then c.attempt_id else ff__mint_id(p_now_ms, c.partition_key) end,
            attempt_index = case when t.resumed then c.attempt_index else c.total_attempt_count end,
            total_attempt_count = c.total_attempt_count + (not t.resumed)::int,
            attempt_type = case when t.resumed then c.attempt_type
                                when c.state in ('ready', 'delayed') then 'initial'
                                when c.state in ('ready_retry', 'backoff_retry') then 'retry'
                                when c.state in ('ready_replay', 'delayed_replay') then 'replay' else 'reclaim' end,
            lease_reclaim_count = c.lease_reclaim_count
                                  + (c.state in ('leased', 'lease_expired', 'lease_revoked'))::int,
            attempt_started_at_ms = case when t.resumed then c.attempt_started_at_ms else p_now_ms end,
            attempt_resumed_at_ms = case when t.resumed then p_now_ms end,
            attempt_suspended_at_ms = case when t.resumed then c.attempt_suspended_at_ms end,
            attempt_ended_at_ms = null, attempt_outcome = null, attempt_failure_reason = null,
            attempt_failure_category = null, attempt_classification = null, result = null, result_encoding = null,
            progress_pct = case when t.resumed then c.progress_pct end,
            progress_message = case when t.resumed then c.progress_message end,
            progress_updated_at_ms = case when t.resumed then c.progress_updated_at_ms end,
            release_op = case when t.resumed then c.release_op end,
            release_at_ms = case when t.resumed then c.release_at_ms end,
            release_detail = case when t.resumed then c.release_detail end,
            release_lease_id = case when t.resumed then c.lease_id end,
            release_lease_epoch = case when t.resumed then c.lease_epoch end,
            attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null, blocking_detail = null,
            blocked_budget_id = null, failure_reason = null, failure_category = null, granted = false,
            started_at_ms = coalesce(c.started_at_ms, p_now_ms), last_transition_at_ms = p_now_ms,
            last_mutation_at_ms = p_now_ms, last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(p_ids) with ordinality u(id, n)
         cross join lateral (
               select x.state in ('ready_resume', 'delayed_resume', 'resume_delay_resume') as resumed,
                      ff__time_after(p_now_ms,
                                     case when x.state in ('ready_resume', 'delayed_resume', 'resume_delay_resume')
                                          then x.attempt_remaining_ms else x.attempt_timeout_ms end) as timeout_at_ms
                 from ff_execution x where x.execution_id = any (array[u.id])) t
         where c.execution_id = any (array[u.id])
        returning u.n, c.*
    )
    select ff__encode_handle(l.partition_key, l.execution_id, l.attempt_index, l.lease_id, l.lease_epoch, l.attempt_id),
           case when l.attempt_resumed_at_ms is not null then 'resumed' when l.attempt_type = 'reclaim' then 'reclaimed'
                else 'fresh' end,
           ff__wire_id(l.partition_key, l.execution_id), l.namespace, l.lane_id, l.flow_id, l.execution_kind, l.payload,
           l.payload_encoding, coalesce(l.tags, '{}'), l.priority, l.attempt_index, l.attempt_id, l.attempt_type, l.lease_id,
           l.lease_epoch, l.lease_expires_at_ms, l.attempt_timeout_at_ms, l.deadline_at_ms
      from leased l order by l.n;
    if v_reclaimed is null then
        perform ff__emit_executions(p_ids, 'acquired', null, null, null, p_now_ms);
    else
        perform ff__emit_executions(v_reclaimed, 'reclaimed', null, null, null, p_now_ms);
        perform ff__emit_executions(array(select u.id from unnest(p_ids) with ordinality u(id, n)
                                     where u.id <> all (v_reclaimed) order by u.n), 'acquired', null, null, null, p_now_ms);
    end if;
    if v_granted then
        delete from ff_claim_grant g where g.execution_id = any (p_ids);
    end if;
    if v_limited then
        delete from ff_quota_reservation r
         using ff_execution c
         where c.execution_id = any (p_ids) and r.execution_id = c.execution_id
           and r.quota_policy_id = c.quota_policy_id;
    end if;
end
$$;
