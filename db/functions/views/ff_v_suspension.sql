-- Suspensions, for dashboards and ad hoc queries. open has the form of the predicate of the indexes on
-- open suspensions.
create or replace view ff_v_suspension as
select s.suspension_id,
       '{fp:' || get_byte(uuid_send(s.execution_id), 15)::text || '}:' || s.execution_id::text as execution_id,
       s.execution_id as execution_uuid,
       c.lane_id,
       c.namespace,
       s.attempt_index,
       s.suspension_no,
       s.closed_at_ms is null as open,
       s.reason_code,
       s.reason_detail,
       s.requested_by,
       to_timestamp(s.suspended_at_ms / 1000::float8) as suspended_at,
       to_timestamp(s.timeout_at_ms / 1000::float8) as timeout_at,
       s.timeout_behavior,
       to_timestamp(s.escalated_at_ms / 1000::float8) as escalated_at,
       cardinality(s.waitpoint_ids) as waitpoints,
       s.condition,
       to_timestamp(s.last_signal_at_ms / 1000::float8) as last_signal_at,
       to_timestamp(s.satisfied_at_ms / 1000::float8) as satisfied_at,
       to_timestamp(s.closed_at_ms / 1000::float8) as closed_at,
       s.close_reason,
       s.resume_trigger,
       s.resumed_by
  from ff_suspension s
  join ff_execution c on c.execution_id = s.execution_id;

comment on view ff_v_suspension is
$$Suspensions, open and closed: what an execution waits or waited for, since when, until when. One row each. Tokens are
not shown.
Fast: suspension_id = .., execution_uuid = .., open.$$;
comment on column ff_v_suspension.suspension_id is 'The id of the suspension.';
comment on column ff_v_suspension.execution_id is 'The execution''s id as functions take and return it.';
comment on column ff_v_suspension.execution_uuid is
    'The uuid in execution_id, which the indexes are on: compare it with right(id, 36)::uuid.';
comment on column ff_v_suspension.lane_id is 'The lane of the execution.';
comment on column ff_v_suspension.namespace is 'The namespace of the execution.';
comment on column ff_v_suspension.attempt_index is 'The attempt that waits.';
comment on column ff_v_suspension.suspension_no is 'The number of the suspension within its execution, from 1.';
comment on column ff_v_suspension.open is 'Whether it still waits.';
comment on column ff_v_suspension.reason_code is 'What it waits for.';
comment on column ff_v_suspension.reason_detail is 'Details given by the caller.';
comment on column ff_v_suspension.requested_by is 'Who suspended it.';
comment on column ff_v_suspension.suspended_at is 'When it was suspended.';
comment on column ff_v_suspension.timeout_at is 'When it times out; NULL: never.';
comment on column ff_v_suspension.timeout_behavior is 'What happens at the timeout.';
comment on column ff_v_suspension.escalated_at is 'When its timeout was escalated to operators.';
comment on column ff_v_suspension.waitpoints is 'How many waitpoints it waits at.';
comment on column ff_v_suspension.condition is 'The condition that ends it.';
comment on column ff_v_suspension.last_signal_at is 'When the last signal arrived.';
comment on column ff_v_suspension.satisfied_at is 'When the condition was met.';
comment on column ff_v_suspension.closed_at is
    'When it ended. To find open ones use the column open: closed_at is null is not indexed.';
comment on column ff_v_suspension.close_reason is 'How it ended.';
comment on column ff_v_suspension.resume_trigger is 'What resumed it.';
comment on column ff_v_suspension.resumed_by is 'Who resumed it.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
