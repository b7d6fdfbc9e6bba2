-- Executions as people look at them. Columns are named one by one, so that a new one in a table changes nothing here. Tables
-- are read with the rights of the view's owner, but functions are called with those of the reader: only PostgreSQL's own are,
-- so that SELECT on the view is all that it takes. No security_barrier: the view hides columns, not rows, and conditions must
-- get through to the indexes. For that the lane is compared twice: a condition on it selects queues, too.
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
       case when c.terminal_at_ms is not null and c.total_attempt_count = 0 then 'none' else w.attempt_state end as attempt_state,
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
       case when w.lifecycle_phase = 'active' then to_timestamp(c.lease_expires_at_ms / 1000::float8) end as lease_expires_at,
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
       coalesce(c.policy, jsonb '{"max_reclaim_count": 100, "max_replay_count": 10, "dedup_window_ms": 604800000, "max_signals_per_execution": 10000}') as policy,
       octet_length(c.payload) as payload_bytes,
       to_timestamp(c.last_transition_at_ms / 1000::float8) as last_transition_at,
       to_timestamp(c.last_mutation_at_ms / 1000::float8) as last_mutation_at
  from ff_execution c
  join ff_state_word w on w.state = c.state
  join ff_queue q on q.queue_id = c.queue_id and q.lane_id = c.lane_id
  left join ff_queue r on r.queue_id = c.ready_in;

comment on view ff_v_execution is
$$Executions: state, times, attempts, lease, what they wait for. One row each.
Fast: execution_uuid = .., order by execution_uuid desc limit .., flow_id = .., tags @> ..; what can be claimed on a lane
by ready_on = ..; what runs or is delayed on one by lane_id = .. and timed.$$;
comment on column ff_v_execution.execution_id is 'The execution''s id as functions take and return it.';
comment on column ff_v_execution.execution_uuid is
    'The uuid in execution_id, which the indexes are on: compare it with right(id, 36)::uuid. Ids made by the engine are in '
    'the order of time.';
comment on column ff_v_execution.namespace is 'The namespace it was submitted to.';
comment on column ff_v_execution.lane_id is 'The lane it waits on.';
comment on column ff_v_execution.execution_kind is 'What the submitter calls this kind of work.';
comment on column ff_v_execution.public_state is 'The state in one word; docs/states.md explains each.';
comment on column ff_v_execution.priority is 'Higher goes first.';
comment on column ff_v_execution.created_at is 'When it was submitted. To page by it, order by execution_uuid.';
comment on column ff_v_execution.started_at is 'When it was first claimed.';
comment on column ff_v_execution.terminal_at is 'When it ended; NULL while it lives.';
comment on column ff_v_execution.lifecycle_phase is 'State vector: runnable, active, suspended or terminal.';
comment on column ff_v_execution.ownership_state is 'State vector: whether a worker holds it.';
comment on column ff_v_execution.eligibility_state is 'State vector: whether it may be claimed, or what forbids it.';
comment on column ff_v_execution.blocking_reason is 'State vector: what it waits for.';
comment on column ff_v_execution.blocking_detail is 'More on what it waits for.';
comment on column ff_v_execution.terminal_outcome is 'State vector: how it ended, or none.';
comment on column ff_v_execution.attempt_state is 'State vector: how its current attempt stands.';
comment on column ff_v_execution.ready_on is
    'Its lane, while a claim can take it as it stands; NULL: it cannot.';
comment on column ff_v_execution.timed is
    'It is leased, delayed, reserved by a grant, or parked by a limit.';
comment on column ff_v_execution.flow_id is 'The flow it is a member of.';
comment on column ff_v_execution.current_attempt_index is
    'The number of the latest attempt, from 0; NULL before the first claim.';
comment on column ff_v_execution.total_attempt_count is 'How many attempts were begun.';
comment on column ff_v_execution.retry_count is 'How many of them were retries of a failure.';
comment on column ff_v_execution.lease_reclaim_count is 'How many were taken over after a lapsed lease.';
comment on column ff_v_execution.replay_count is 'How often it was replayed after its end.';
comment on column ff_v_execution.lease_epoch is 'The number of the last lease; 0 before the first.';
comment on column ff_v_execution.lease_acquired_at is 'When the present lease was taken.';
comment on column ff_v_execution.lease_renewed_at is 'When it was last renewed.';
comment on column ff_v_execution.lease_expires_at is 'When it ends unless it is renewed.';
comment on column ff_v_execution.lease_revoke_reason is 'Why the lease was taken away.';
comment on column ff_v_execution.worker_id is 'The worker that holds the lease.';
comment on column ff_v_execution.worker_instance_id is 'Its process.';
comment on column ff_v_execution.delay_until is
    'Not before then: the end of a delay, of a retry''s backoff or of a resume''s.';
comment on column ff_v_execution.not_before is 'When admission may be asked for again.';
comment on column ff_v_execution.deadline_at is 'When it expires, whatever it does.';
comment on column ff_v_execution.attempt_timeout_at is 'When the running attempt is out of time.';
comment on column ff_v_execution.current_suspension_id is 'The suspension it waits in.';
comment on column ff_v_execution.quota_policy_id is 'The quota policy it is admitted under.';
comment on column ff_v_execution.budget_ids is 'The budgets it uses up.';
comment on column ff_v_execution.failure_reason is 'Why the last attempt failed.';
comment on column ff_v_execution.failure_category is 'The category of that failure.';
comment on column ff_v_execution.cancellation_reason is 'Why it was cancelled.';
comment on column ff_v_execution.cancelled_by is 'Who cancelled it.';
comment on column ff_v_execution.creator is 'Who submitted it.';
comment on column ff_v_execution.tags is 'Its tags; NULL: none.';
comment on column ff_v_execution.required_capabilities is 'What a worker must be able to do to claim it.';
comment on column ff_v_execution.policy is 'Retries, timeouts and the rest, as they were frozen when it was submitted.';
comment on column ff_v_execution.payload_bytes is 'The size of its payload; ff_read_execution_context returns it.';
comment on column ff_v_execution.last_transition_at is 'When its state last changed.';
comment on column ff_v_execution.last_mutation_at is 'When anything about it last changed.';
