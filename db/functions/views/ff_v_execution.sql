-- Executions, for dashboards and ad hoc queries. Columns are named one by one, so that a new table column does not
-- change the view. Tables are read with the rights of the view's owner, but functions are called with those of the
-- reader: the view calls only PostgreSQL's own, so that SELECT on the view suffices. No security_barrier: the view
-- hides columns, not rows, and conditions must reach the indexes. For the same reason the lane is compared twice: a
-- condition on it also selects queues.
create or replace view ff_v_execution as
select '{fp:' || get_byte(uuid_send(c.execution_id), 15)::text || '}:' || c.execution_id::text as execution_id,
       c.execution_id as execution_uuid,
       c.namespace,
       c.lane_id,
       c.execution_kind,
       w.public_state,
       c.priority,
       to_timestamp(c.created_at_ms / 1000::float8) as created_at,
       to_timestamp(c.started_at_ms / 1000::float8) as started_at,
       to_timestamp(c.terminal_at_ms / 1000::float8) as terminal_at,
       w.lifecycle_phase,
       w.ownership_state,
       w.eligibility_state,
       w.blocking_reason,
       c.blocking_detail,
       w.terminal_outcome,
       case when c.terminal_at_ms is not null and c.total_attempt_count = 0 then 'none'
            else w.attempt_state end as attempt_state,
       r.lane_id as ready_on,
       c.due_at_ms is not null as timed,
       c.flow_id,
       c.attempt_index as current_attempt_index,
       c.total_attempt_count,
       c.retry_count,
       c.lease_reclaim_count,
       c.replay_count,
       c.lease_epoch,
       to_timestamp(c.lease_acquired_at_ms / 1000::float8) as lease_acquired_at,
       to_timestamp(c.lease_renewed_at_ms / 1000::float8) as lease_renewed_at,
       case when w.lifecycle_phase = 'active' then to_timestamp(c.lease_expires_at_ms / 1000::float8)
            end as lease_expires_at,
       case when w.lifecycle_phase = 'active' then c.lease_revoke_reason end as lease_revoke_reason,
       case when w.lifecycle_phase = 'active' then c.worker_id end as worker_id,
       case when w.lifecycle_phase = 'active' then c.worker_instance_id end as worker_instance_id,
       to_timestamp(c.delay_until_ms / 1000::float8) as delay_until,
       to_timestamp(c.not_before_ms / 1000::float8) as not_before,
       to_timestamp(c.deadline_at_ms / 1000::float8) as deadline_at,
       to_timestamp(c.attempt_timeout_at_ms / 1000::float8) as attempt_timeout_at,
       c.current_suspension_id,
       c.quota_policy_id,
       c.budget_ids,
       c.failure_reason,
       c.failure_category,
       c.cancellation_reason,
       c.cancelled_by,
       c.creator,
       c.tags,
       q.required_capabilities,
       coalesce(c.policy, jsonb '{"max_reclaim_count": 100, "max_replay_count": 10, "dedup_window_ms": 604800000, '
                                '"max_signals_per_execution": 10000}') as policy,
       octet_length(c.payload) as payload_bytes,
       to_timestamp(c.last_transition_at_ms / 1000::float8) as last_transition_at,
       to_timestamp(c.last_mutation_at_ms / 1000::float8) as last_mutation_at
  from ff_execution c
  join ff_state_word w on w.state = c.state
  join ff_queue q on q.queue_id = c.queue_id and q.lane_id = c.lane_id
  left join ff_queue r on r.queue_id = abs(c.ready_in);

comment on view ff_v_execution is
$$Executions: state, times, attempts, lease, what they wait for. One row each.
Fast: execution_uuid = .., order by execution_uuid desc limit .., flow_id = .., tags @> ..; claimable executions of a
lane by ready_on = ..; running or delayed executions of a lane by lane_id = .. and timed.$$;
comment on column ff_v_execution.execution_id is 'The execution''s id as functions take and return it.';
comment on column ff_v_execution.execution_uuid is
    'The uuid in execution_id, which the indexes are on: compare it with right(id, 36)::uuid. Ids made by the engine '
    'are in the order of time.';
comment on column ff_v_execution.namespace is 'The namespace it was submitted to.';
comment on column ff_v_execution.lane_id is 'Its lane.';
comment on column ff_v_execution.execution_kind is 'The kind of work, as named by the submitter.';
comment on column ff_v_execution.public_state is 'The state in one word; docs/states.md explains each.';
comment on column ff_v_execution.priority is 'Its priority; higher is claimed first.';
comment on column ff_v_execution.created_at is 'When it was submitted. To page by it, order by execution_uuid.';
comment on column ff_v_execution.started_at is 'When it was first claimed.';
comment on column ff_v_execution.terminal_at is 'When it ended; NULL before.';
comment on column ff_v_execution.lifecycle_phase is 'State vector: runnable, active, suspended or terminal.';
comment on column ff_v_execution.ownership_state is 'State vector: whether a worker holds it.';
comment on column ff_v_execution.eligibility_state is 'State vector: whether it may be claimed, or what blocks it.';
comment on column ff_v_execution.blocking_reason is 'State vector: what it waits for.';
comment on column ff_v_execution.blocking_detail is 'More on what it waits for.';
comment on column ff_v_execution.terminal_outcome is 'State vector: how it ended, or none.';
comment on column ff_v_execution.attempt_state is 'State vector: the state of its current attempt.';
comment on column ff_v_execution.ready_on is
    'Its lane while it is claimable, otherwise NULL.';
comment on column ff_v_execution.timed is
    'Whether it is leased, delayed, reserved by a grant, or parked by a limit.';
comment on column ff_v_execution.flow_id is 'The flow it is a member of.';
comment on column ff_v_execution.current_attempt_index is
    'The number of the latest attempt, from 0; NULL before the first claim.';
comment on column ff_v_execution.total_attempt_count is 'How many attempts were started.';
comment on column ff_v_execution.retry_count is 'How many of them were retries of a failure.';
comment on column ff_v_execution.lease_reclaim_count is 'Number of reclaims, after an expired or revoked lease.';
comment on column ff_v_execution.replay_count is 'How often it was replayed after its end.';
comment on column ff_v_execution.lease_epoch is 'The number of the last lease; 0 before the first.';
comment on column ff_v_execution.lease_acquired_at is 'When the current lease was granted.';
comment on column ff_v_execution.lease_renewed_at is 'When it was last renewed.';
comment on column ff_v_execution.lease_expires_at is 'When the lease expires unless it is renewed.';
comment on column ff_v_execution.lease_revoke_reason is 'Why the lease was revoked.';
comment on column ff_v_execution.worker_id is 'The worker that holds the lease.';
comment on column ff_v_execution.worker_instance_id is 'The process of that worker.';
comment on column ff_v_execution.delay_until is
    'The end of its delay, retry backoff or resume delay.';
comment on column ff_v_execution.not_before is 'The earliest time of its next admission check.';
comment on column ff_v_execution.deadline_at is 'When it expires, in any state.';
comment on column ff_v_execution.attempt_timeout_at is 'When the running attempt times out.';
comment on column ff_v_execution.current_suspension_id is 'The suspension it is in.';
comment on column ff_v_execution.quota_policy_id is 'The quota policy it is admitted under.';
comment on column ff_v_execution.budget_ids is 'The budgets attached to it.';
comment on column ff_v_execution.failure_reason is 'Why the last attempt failed.';
comment on column ff_v_execution.failure_category is 'The category of that failure.';
comment on column ff_v_execution.cancellation_reason is 'Why it was cancelled.';
comment on column ff_v_execution.cancelled_by is 'Who cancelled it.';
comment on column ff_v_execution.creator is 'Who submitted it.';
comment on column ff_v_execution.tags is 'Its tags; NULL: none.';
comment on column ff_v_execution.required_capabilities is 'The capabilities that a worker needs to claim it.';
comment on column ff_v_execution.policy is 'Its policy (retries, timeouts and so on), fixed at submission.';
comment on column ff_v_execution.payload_bytes is 'The size of its payload; ff_read_execution_context returns it.';
comment on column ff_v_execution.last_transition_at is 'When its state last changed.';
comment on column ff_v_execution.last_mutation_at is 'When it was last changed.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
