-- Writes an execution row back: the one UPDATE of an operation. Columns that never change are left out; those that
-- did not change in this operation keep their value, so a renewal is still a HOT update.
create or replace function ff__store(e ff_exec_core) returns void
language plpgsql volatile
as $$
begin
    update ff_exec_core c set
        flow_id = e.flow_id,
        current_attempt_id = e.current_attempt_id,
        lease_id = e.lease_id,
        current_suspension_id = e.current_suspension_id,
        current_waitpoint_id = e.current_waitpoint_id,
        lease_epoch = e.lease_epoch,
        lease_ttl_ms = e.lease_ttl_ms,
        lease_acquired_at_ms = e.lease_acquired_at_ms,
        lease_renewed_at_ms = e.lease_renewed_at_ms,
        lease_expires_at_ms = e.lease_expires_at_ms,
        lease_check_at_ms = e.lease_check_at_ms,
        delay_until_ms = e.delay_until_ms,
        not_before_ms = e.not_before_ms,
        deadline_at_ms = e.deadline_at_ms,
        attempt_timeout_at_ms = e.attempt_timeout_at_ms,
        attempt_remaining_ms = e.attempt_remaining_ms,
        started_at_ms = e.started_at_ms,
        terminal_at_ms = e.terminal_at_ms,
        last_transition_at_ms =
            case when c.lifecycle_phase = e.lifecycle_phase and c.ownership_state = e.ownership_state
                      and c.eligibility_state = e.eligibility_state and c.blocking_reason = e.blocking_reason
                      and c.terminal_outcome = e.terminal_outcome and c.attempt_state = e.attempt_state
                 then c.last_transition_at_ms else e.last_mutation_at_ms end,
        last_mutation_at_ms = e.last_mutation_at_ms,
        last_event_ord = e.last_event_ord,
        priority = e.priority,
        current_attempt_index = e.current_attempt_index,
        total_attempt_count = e.total_attempt_count,
        retry_count = e.retry_count,
        lease_reclaim_count = e.lease_reclaim_count,
        replay_count = e.replay_count,
        lifecycle_phase = e.lifecycle_phase,
        ownership_state = e.ownership_state,
        eligibility_state = e.eligibility_state,
        blocking_reason = e.blocking_reason,
        terminal_outcome = e.terminal_outcome,
        attempt_state = e.attempt_state,
        worker_id = e.worker_id,
        worker_instance_id = e.worker_instance_id,
        blocking_detail = e.blocking_detail,
        lease_revoke_reason = e.lease_revoke_reason,
        failure_reason = e.failure_reason,
        failure_category = e.failure_category,
        cancellation_reason = e.cancellation_reason,
        cancelled_by = e.cancelled_by,
        quota_policy_id = e.quota_policy_id,
        budget_ids = e.budget_ids
     where c.execution_id = e.execution_id;
end
$$;
