-- Attempts, for dashboards and ad hoc queries. Results are read with ff_get_execution_result; lease ids are not shown.
create or replace view ff_v_attempt as
select '{fp:' || get_byte(uuid_send(a.execution_id), 15)::text || '}:' || a.execution_id::text as execution_id,
       a.execution_id as execution_uuid,
       a.attempt_index,
       a.attempt_type,
       a.state,
       a.outcome,
       a.previous_attempt_index,
       a.worker_id,
       a.worker_instance_id,
       a.lease_epoch,
       to_timestamp(a.started_at_ms / 1000::float8) as started_at,
       to_timestamp(a.suspended_at_ms / 1000::float8) as suspended_at,
       to_timestamp(a.resumed_at_ms / 1000::float8) as resumed_at,
       to_timestamp(a.ended_at_ms / 1000::float8) as ended_at,
       a.failure_reason,
       a.failure_category,
       a.classification,
       a.progress_pct,
       a.progress_message,
       to_timestamp(a.progress_updated_at_ms / 1000::float8) as progress_updated_at,
       octet_length(a.result) as result_bytes,
       a.result_encoding,
       a.release_op,
       to_timestamp(a.release_at_ms / 1000::float8) as release_at
  from ff_attempt a;

comment on view ff_v_attempt is
$$Attempts: who ran an execution, when, how it ended. One row each.
Fast: execution_uuid = ..$$;
comment on column ff_v_attempt.execution_id is 'The execution''s id as functions take and return it.';
comment on column ff_v_attempt.execution_uuid is
    'The uuid in execution_id, which the indexes are on: compare it with right(id, 36)::uuid.';
comment on column ff_v_attempt.attempt_index is 'The number of the attempt, from 0.';
comment on column ff_v_attempt.attempt_type is 'initial, retry, reclaim (after an expired or revoked lease) or replay.';
comment on column ff_v_attempt.state is
    'started, suspended, ended_success, ended_failure, ended_cancelled or interrupted_reclaimed.';
comment on column ff_v_attempt.outcome is 'How it ended.';
comment on column ff_v_attempt.previous_attempt_index is 'The attempt it follows.';
comment on column ff_v_attempt.worker_id is 'The worker of its latest lease.';
comment on column ff_v_attempt.worker_instance_id is 'That worker''s process.';
comment on column ff_v_attempt.lease_epoch is 'The number of its latest lease.';
comment on column ff_v_attempt.started_at is 'When it was claimed.';
comment on column ff_v_attempt.suspended_at is 'When it was last suspended.';
comment on column ff_v_attempt.resumed_at is 'When it was last claimed after a suspension.';
comment on column ff_v_attempt.ended_at is 'When it ended.';
comment on column ff_v_attempt.failure_reason is 'Why it failed.';
comment on column ff_v_attempt.failure_category is 'The category of the failure.';
comment on column ff_v_attempt.classification is 'How the policy classified the failure.';
comment on column ff_v_attempt.progress_pct is 'The reported progress in percent.';
comment on column ff_v_attempt.progress_message is 'The reported progress message.';
comment on column ff_v_attempt.progress_updated_at is 'When progress was last reported.';
comment on column ff_v_attempt.result_bytes is 'The size of its result; ff_get_execution_result returns it.';
comment on column ff_v_attempt.result_encoding is 'The encoding of its result.';
comment on column ff_v_attempt.release_op is 'The call that released its lease.';
comment on column ff_v_attempt.release_at is 'When the lease was released.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
