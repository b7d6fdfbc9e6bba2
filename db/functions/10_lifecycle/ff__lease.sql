-- Mints a lease on a row that is locked, stamped and claimable: R1 starts an attempt, R2 goes on with the paused one,
-- A2 / A3 end the interrupted one and start the next (a reclaim). Writes attempt, event and row; the grant is used up.
create or replace function ff__lease(
    e ff_exec_core, p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint
) returns ff_claim_row
language plpgsql volatile
as $$
declare
    v_now bigint := e.last_mutation_at_ms;
    v_previous int := e.current_attempt_index;
    i ff_exec_input;
    r ff_claim_row;
begin
    select x.* into i from ff_exec_input x where x.execution_id = e.execution_id;
    delete from ff_claim_grant g where g.execution_id = e.execution_id;

    if e.lifecycle_phase = 'active' then
        e := ff__end_reclaimed(e);
        e.lease_reclaim_count := e.lease_reclaim_count + 1;
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
    e.lease_id := ff__mint_id(v_now, e.partition_key);
    e.worker_id := p_worker_id;
    e.worker_instance_id := p_worker_instance_id;
    if r.handle_kind = 'resumed' then
        e.attempt_timeout_at_ms := v_now + e.attempt_remaining_ms;
        e.attempt_remaining_ms := null;
        update ff_attempt a set
            state = 'started', resumed_at_ms = v_now, lease_id = e.lease_id, lease_epoch = e.lease_epoch,
            worker_id = p_worker_id, worker_instance_id = p_worker_instance_id
         where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
         returning a.attempt_type into r.attempt_type;
    else
        e.current_attempt_index := e.total_attempt_count;
        e.total_attempt_count := e.total_attempt_count + 1;
        e.current_attempt_id := ff__mint_id(v_now, e.partition_key);
        e.attempt_timeout_at_ms := v_now + (i.policy #> '{timeout_policy,attempt_timeout_ms}')::bigint;
        insert into ff_attempt (
            execution_id, attempt_index, previous_attempt_index, attempt_id, attempt_type, state, lease_id, lease_epoch,
            worker_id, worker_instance_id, started_at_ms)
        values (
            e.execution_id, e.current_attempt_index, v_previous, e.current_attempt_id, r.attempt_type, 'started',
            e.lease_id, e.lease_epoch, p_worker_id, p_worker_instance_id, v_now);
    end if;
    e.lease_ttl_ms := p_lease_ttl_ms;
    e.lease_acquired_at_ms := v_now;
    e.lease_renewed_at_ms := null;
    e.lease_expires_at_ms := least(v_now + p_lease_ttl_ms, e.attempt_timeout_at_ms, e.deadline_at_ms);
    e.lease_check_at_ms := e.lease_expires_at_ms;
    e.lease_revoke_reason := null;
    e.started_at_ms := coalesce(e.started_at_ms, v_now);
    e.delay_until_ms := null;
    e.not_before_ms := null;
    e.failure_reason := null;
    e.failure_category := null;
    e.lifecycle_phase := 'active';
    e.ownership_state := 'leased';
    e.eligibility_state := 'not_applicable';
    e.blocking_reason := 'none';
    e.blocking_detail := null;
    e.attempt_state := 'running_attempt';
    perform ff__emit(e, 'lease', case r.handle_kind when 'reclaimed' then 'reclaimed' else 'acquired' end);
    perform ff__store(e);

    r.handle := ff__encode_handle(e.partition_key, e.execution_id, e.current_attempt_index, e.lease_id, e.lease_epoch,
                                  e.current_attempt_id);
    r.execution_id := ff__wire_id(e.partition_key, e.execution_id);
    r.namespace := e.namespace;
    r.lane_id := e.lane_id;
    r.flow_id := e.flow_id;
    r.execution_kind := i.execution_kind;
    r.payload := i.payload;
    r.payload_encoding := i.payload_encoding;
    r.tags := i.tags;
    r.priority := e.priority;
    r.attempt_index := e.current_attempt_index;
    r.attempt_id := e.current_attempt_id;
    r.lease_id := e.lease_id;
    r.lease_epoch := e.lease_epoch;
    r.lease_expires_at_ms := e.lease_expires_at_ms;
    r.attempt_timeout_at_ms := e.attempt_timeout_at_ms;
    r.deadline_at_ms := e.deadline_at_ms;
    return r;
end
$$;
