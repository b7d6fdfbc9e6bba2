create or replace function ff_describe_execution(p_execution_id text)
returns table (
    execution_id text, namespace text, lane_id text, lane_state text, flow_id uuid, execution_kind text, creator text,
    priority int, payload_encoding text, policy jsonb, tags jsonb, required_capabilities text[],
    lifecycle_phase text, ownership_state text, eligibility_state text, blocking_reason text, terminal_outcome text,
    attempt_state text, public_state text, blocking_detail text,
    current_attempt_index int, current_attempt_id uuid, total_attempt_count int, retry_count int,
    lease_reclaim_count int, replay_count int,
    lease_epoch bigint, lease_id uuid, lease_live boolean, lease_ttl_ms bigint, lease_acquired_at_ms bigint,
    lease_renewed_at_ms bigint, lease_expires_at_ms bigint, lease_revoke_reason text, worker_id text,
    worker_instance_id text, delay_until_ms bigint, not_before_ms bigint, deadline_at_ms bigint,
    attempt_timeout_at_ms bigint, attempt_remaining_ms bigint, current_suspension_id uuid, current_waitpoint_id uuid,
    quota_policy_id text, budget_ids text[], created_at_ms bigint, started_at_ms bigint, terminal_at_ms bigint,
    failure_reason text, failure_category text, cancellation_reason text, cancelled_by text,
    progress_pct int, progress_message text, progress_updated_at_ms bigint,
    last_transition_at_ms bigint, last_mutation_at_ms bigint, parent_execution_id text
)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select ff__wire_id(c.partition_key, c.execution_id), c.namespace, c.lane_id, l.state, c.flow_id,
               x.execution_kind, x.creator, c.priority, x.payload_encoding, coalesce(x.policy, ff__default_policy()),
               coalesce(x.tags, '{}'), q.required_capabilities,
               c.lifecycle_phase, c.ownership_state, c.eligibility_state, c.blocking_reason, c.terminal_outcome,
               c.attempt_state, c.public_state, c.blocking_detail,
               c.current_attempt_index, c.current_attempt_id, c.total_attempt_count, c.retry_count,
               c.lease_reclaim_count, c.replay_count,
               c.lease_epoch, c.lease_id,
               c.state = 'leased' and c.lease_expires_at_ms > ff__now_ms(),
               c.lease_ttl_ms, c.lease_acquired_at_ms, c.lease_renewed_at_ms, c.lease_expires_at_ms,
               c.lease_revoke_reason, c.worker_id, c.worker_instance_id, c.delay_until_ms, c.not_before_ms,
               c.deadline_at_ms, c.attempt_timeout_at_ms, c.attempt_remaining_ms, c.current_suspension_id,
               c.current_waitpoint_id, c.quota_policy_id, c.budget_ids, c.created_at_ms, c.started_at_ms,
               c.terminal_at_ms, c.failure_reason, c.failure_category, c.cancellation_reason, c.cancelled_by,
               x.progress_pct, x.progress_message, x.progress_updated_at_ms,
               c.last_transition_at_ms, c.last_mutation_at_ms, ff__wire_id(ff__partition(k.parent_id), k.parent_id)
          from ff_exec_core c
          join ff_execution x on x.execution_id = c.execution_id
          join ff_queue q on q.queue_id = c.queue_id
          left join ff_lane_registry l on l.lane_id = c.lane_id
          left join ff_child k on k.child_id = c.execution_id
         where c.execution_id = v_id;
end
$$;

comment on function ff_describe_execution(text) is
$$All fields of one execution except its payload and results: state, attempt, lease, timers, counters, outcome, tags,
policy and the progress of its current attempt. No row: there is no such execution.

Rows: at most one
Outcomes: lane_state = active | paused | draining | disabled
Nullable: lane_state, flow_id, payload_encoding, blocking_detail, current_attempt_index, current_attempt_id, lease_id
Nullable: lease_ttl_ms, lease_acquired_at_ms, lease_renewed_at_ms, lease_expires_at_ms, lease_revoke_reason
Nullable: worker_id, worker_instance_id, delay_until_ms, not_before_ms, deadline_at_ms, attempt_timeout_at_ms
Nullable: attempt_remaining_ms, current_suspension_id, current_waitpoint_id, quota_policy_id, budget_ids
Nullable: started_at_ms, terminal_at_ms, failure_reason, failure_category, cancellation_reason, cancelled_by
Nullable: progress_pct, progress_message, progress_updated_at_ms, parent_execution_id
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
