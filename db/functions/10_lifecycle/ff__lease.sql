-- Mints a lease on a row that is locked and claimable: R1 starts an attempt, R2 goes on with the paused one, A2 / A3 end
-- the interrupted one and start the next (a reclaim). Writes row, attempt and event; a grant is used up. Returns
-- the row as it is now, with handle_kind and attempt_type: ff__claimed makes a claim's answer of it.
create or replace function ff__lease(
    e ff_exec, p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint
) returns ff_exec
language plpgsql volatile
as $$
declare
    v_resumed boolean := e.lifecycle_phase = 'runnable' and e.attempt_state = 'attempt_interrupted';
    v_reclaimed boolean := e.lifecycle_phase = 'active';
    v_previous int := e.current_attempt_index;
begin
    if v_reclaimed then
        e := ff__end_reclaimed(e);
        if e.ownership_state = 'leased' then
            perform ff__emit_end(e, null, null);
        end if;
    end if;
    e.attempt_timeout_at_ms := ff__time_after(e.now_ms, case when v_resumed then e.attempt_remaining_ms
                                                             else e.attempt_timeout_ms end);
    e.lease_expires_at_ms := least(e.now_ms + p_lease_ttl_ms, e.attempt_timeout_at_ms, e.deadline_at_ms);
    e.lease_id := ff__mint_id(e.now_ms, e.partition_key);
    e.lease_epoch := e.lease_epoch + 1;
    if not v_resumed then
        e.current_attempt_id := ff__mint_id(e.now_ms, e.partition_key);
        e.current_attempt_index := e.total_attempt_count;
        e.attempt_type := case e.attempt_state when 'pending_first_attempt' then 'initial'
                                               when 'pending_retry_attempt' then 'retry'
                                               when 'pending_replay_attempt' then 'replay'
                                               else 'reclaim' end;
    end if;
    e.handle_kind := case when v_reclaimed then 'reclaimed' when v_resumed then 'resumed' else 'fresh' end;
    e.worker_id := p_worker_id;
    e.worker_instance_id := p_worker_instance_id;
    update ff_exec_core c set
        lifecycle_phase = 'active', ownership_state = 'leased', eligibility_state = 'not_applicable',
        blocking_reason = 'none', blocking_detail = null, attempt_state = 'running_attempt',
        current_attempt_index = e.current_attempt_index, current_attempt_id = e.current_attempt_id,
        total_attempt_count = c.total_attempt_count + (not v_resumed)::int,
        lease_reclaim_count = c.lease_reclaim_count + v_reclaimed::int,
        lease_id = e.lease_id, lease_epoch = e.lease_epoch, lease_ttl_ms = p_lease_ttl_ms,
        lease_acquired_at_ms = e.now_ms, lease_renewed_at_ms = null, lease_revoke_reason = null,
        lease_expires_at_ms = e.lease_expires_at_ms, lease_check_at_ms = e.lease_expires_at_ms,
        worker_id = p_worker_id, worker_instance_id = p_worker_instance_id, reserved_until_ms = null,
        attempt_timeout_at_ms = e.attempt_timeout_at_ms, attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null,
        failure_reason = null, failure_category = null, started_at_ms = coalesce(c.started_at_ms, e.now_ms),
        last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    if e.granted then
        delete from ff_claim_grant g where g.execution_id = e.execution_id;
    end if;
    if e.limited then
        -- The lease takes the place of the reservation.
        delete from ff_quota_reservation r
         using ff_exec_core c
         where c.execution_id = e.execution_id and r.execution_id = c.execution_id
           and r.quota_policy_id = c.quota_policy_id;
    end if;
    if v_resumed then
        update ff_attempt a set
            state = 'started', resumed_at_ms = e.now_ms, lease_id = e.lease_id, lease_epoch = e.lease_epoch,
            worker_id = p_worker_id, worker_instance_id = p_worker_instance_id
         where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
         returning a.attempt_type into e.attempt_type;
    else
        insert into ff_attempt (
            execution_id, attempt_index, previous_attempt_index, attempt_id, attempt_type, state, lease_id, lease_epoch,
            worker_id, worker_instance_id, started_at_ms)
        values (
            e.execution_id, e.current_attempt_index, v_previous, e.current_attempt_id, e.attempt_type, 'started',
            e.lease_id, e.lease_epoch, p_worker_id, p_worker_instance_id, e.now_ms);
    end if;
    return ff__emit(e, 'lease', case when v_reclaimed then 'reclaimed' else 'acquired' end);
end
$$;
