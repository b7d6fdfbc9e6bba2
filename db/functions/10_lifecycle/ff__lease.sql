-- Mints a lease on a row that is locked and claimable: R1 starts an attempt, R2 goes on with the paused one, A2 / A3 end
-- the interrupted one and start the next (a reclaim). Writes attempt, row and event; a grant is used up.
create or replace function ff__lease(
    e ff_exec, p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint
) returns ff_claim_row
language plpgsql volatile
as $$
declare
    v_previous int := e.current_attempt_index;
    v_policy jsonb;
    v_timeout bigint;
    r ff_claim_row;
begin
    select i.execution_kind, i.payload, i.payload_encoding, i.tags, i.policy
      into r.execution_kind, r.payload, r.payload_encoding, r.tags, v_policy
      from ff_exec_input i where i.execution_id = e.execution_id;
    delete from ff_claim_grant g where g.execution_id = e.execution_id;

    if e.lifecycle_phase = 'active' then
        e := ff__end_reclaimed(e);
        r.handle_kind := 'reclaimed';
        r.attempt_type := 'reclaim';
    elsif e.attempt_state = 'attempt_interrupted' then
        r.handle_kind := 'resumed';
    else
        r.handle_kind := 'fresh';
        r.attempt_type := case e.attempt_state
            when 'pending_first_attempt' then 'initial' when 'pending_retry_attempt' then 'retry' else 'replay' end;
    end if;

    e.lease_epoch := e.lease_epoch + 1;
    e.lease_id := ff__mint_id(e.now_ms, e.partition_key);
    e.worker_id := p_worker_id;
    e.worker_instance_id := p_worker_instance_id;
    if r.handle_kind = 'resumed' then
        v_timeout := e.now_ms + e.attempt_remaining_ms;
        update ff_attempt a set
            state = 'started', resumed_at_ms = e.now_ms, lease_id = e.lease_id, lease_epoch = e.lease_epoch,
            worker_id = p_worker_id, worker_instance_id = p_worker_instance_id
         where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
         returning a.attempt_type into r.attempt_type;
    else
        e.current_attempt_index := e.total_attempt_count;
        e.total_attempt_count := e.total_attempt_count + 1;
        e.current_attempt_id := ff__mint_id(e.now_ms, e.partition_key);
        v_timeout := e.now_ms + (v_policy #> '{timeout_policy,attempt_timeout_ms}')::bigint;
        insert into ff_attempt (
            execution_id, attempt_index, previous_attempt_index, attempt_id, attempt_type, state, lease_id, lease_epoch,
            worker_id, worker_instance_id, started_at_ms)
        values (
            e.execution_id, e.current_attempt_index, v_previous, e.current_attempt_id, r.attempt_type, 'started',
            e.lease_id, e.lease_epoch, p_worker_id, p_worker_instance_id, e.now_ms);
    end if;
    e.lease_expires_at_ms := least(e.now_ms + p_lease_ttl_ms, v_timeout, e.deadline_at_ms);
    update ff_exec_core c set
        lifecycle_phase = 'active', ownership_state = 'leased', eligibility_state = 'not_applicable',
        blocking_reason = 'none', blocking_detail = null, attempt_state = 'running_attempt',
        current_attempt_index = e.current_attempt_index, current_attempt_id = e.current_attempt_id,
        total_attempt_count = e.total_attempt_count,
        lease_reclaim_count = c.lease_reclaim_count + case r.handle_kind when 'reclaimed' then 1 else 0 end,
        lease_id = e.lease_id, lease_epoch = e.lease_epoch, lease_ttl_ms = p_lease_ttl_ms,
        lease_acquired_at_ms = e.now_ms, lease_renewed_at_ms = null, lease_expires_at_ms = e.lease_expires_at_ms,
        lease_check_at_ms = e.lease_expires_at_ms, lease_revoke_reason = null,
        worker_id = p_worker_id, worker_instance_id = p_worker_instance_id,
        attempt_timeout_at_ms = v_timeout, attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null,
        failure_reason = null, failure_category = null, started_at_ms = coalesce(c.started_at_ms, e.now_ms),
        last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id
    returning c.priority into r.priority;
    e := ff__emit(e, 'lease', case r.handle_kind when 'reclaimed' then 'reclaimed' else 'acquired' end);

    r.handle := ff__encode_handle(e.partition_key, e.execution_id, e.current_attempt_index, e.lease_id, e.lease_epoch,
                                  e.current_attempt_id);
    r.execution_id := ff__wire_id(e.partition_key, e.execution_id);
    r.namespace := e.namespace;
    r.lane_id := e.lane_id;
    r.flow_id := e.flow_id;
    r.attempt_index := e.current_attempt_index;
    r.attempt_id := e.current_attempt_id;
    r.lease_id := e.lease_id;
    r.lease_epoch := e.lease_epoch;
    r.lease_expires_at_ms := e.lease_expires_at_ms;
    r.attempt_timeout_at_ms := v_timeout;
    r.deadline_at_ms := e.deadline_at_ms;
    return r;
end
$$;
