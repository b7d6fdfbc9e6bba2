-- Events, for dashboards and ad hoc queries. To read all events in order, each once, use ff_read_events: this view also
-- shows events above the horizon of running transactions, which may still insert earlier ones.
create or replace view ff_v_event as
select e.family,
       e.event_type,
       to_timestamp(e.occurred_at_ms / 1000::float8) as occurred_at,
       '{fp:' || get_byte(uuid_send(e.execution_id), 15)::text || '}:' || e.execution_id::text as execution_id,
       e.execution_id as execution_uuid,
       e.attempt_index,
       e.flow_id,
       e.lane_id,
       e.namespace,
       e.outcome,
       e.reason,
       e.effect,
       e.worker_id,
       e.worker_instance_id,
       e.lease_epoch,
       e.suspension_id,
       e.waitpoint_id,
       e.signal_id,
       e.source_type,
       e.source_identity,
       e.tags,
       e.details,
       e.gen,
       e.ord,
       e.event_id
  from ff_event_newest e;

comment on view ff_v_event is
$$Events, until the retention of their family ends. One row each.
Fast: family = .. order by gen desc, ord desc, event_id desc limit ..; execution_uuid = .. order by event_id. The latter
scans all rows of batch calls: if there are many, ff_read_events(p_execution_id => ..) is faster.$$;
comment on column ff_v_event.family is 'completion, lease, suspension, signal, operator, worker or flow.';
comment on column ff_v_event.event_type is 'What happened.';
comment on column ff_v_event.occurred_at is 'When, by the engine''s clock.';
comment on column ff_v_event.execution_id is 'The execution''s id as functions take and return it.';
comment on column ff_v_event.execution_uuid is
    'The uuid in execution_id, which the indexes are on: compare it with right(id, 36)::uuid.';
comment on column ff_v_event.attempt_index is 'The attempt it is about.';
comment on column ff_v_event.flow_id is 'The flow it is about, or whose member the execution is.';
comment on column ff_v_event.lane_id is 'The lane it is about.';
comment on column ff_v_event.namespace is 'The namespace it is about.';
comment on column ff_v_event.outcome is 'How the execution, attempt or flow ended.';
comment on column ff_v_event.reason is 'Why.';
comment on column ff_v_event.effect is 'The effect of a signal.';
comment on column ff_v_event.worker_id is 'The worker it is about.';
comment on column ff_v_event.worker_instance_id is 'That worker''s process.';
comment on column ff_v_event.lease_epoch is 'The number of the lease it is about.';
comment on column ff_v_event.suspension_id is 'The suspension it is about.';
comment on column ff_v_event.waitpoint_id is 'The waitpoint it is about.';
comment on column ff_v_event.signal_id is 'The signal it is about.';
comment on column ff_v_event.source_type is 'What kind of source caused it.';
comment on column ff_v_event.source_identity is 'Which one.';
comment on column ff_v_event.tags is 'The tags of the execution or flow at that time.';
comment on column ff_v_event.details is 'Further details.';
comment on column ff_v_event.gen is 'The generation of the order; see docs/events.md.';
comment on column ff_v_event.ord is 'The position in the order: the transaction that wrote it.';
comment on column ff_v_event.event_id is 'The position within that transaction.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
