-- Events: one outbox for every family, written in the transaction of the change.

set local lock_timeout = '10s';

create table ff_event_family (
    family            text collate "C" not null primary key
        check (family in ('completion', 'lease', 'suspension', 'signal', 'operator', 'worker', 'flow')),
    muted             text[]  not null default '{}',
    notify            text collate "C" not null check (notify in ('commit', 'tick', 'off')),
    notified_event_id bigint  not null default 0,
    retention_ms      bigint  not null default 604800000,
    trimmed_gen       int     not null default 0,
    trimmed_ord       bigint  not null default 0,
    trimmed_event_id  bigint  not null default 0
);
comment on table ff_event_family is
    'Per family of events: types that are not written (muted), when subscribers are notified, how long events are '
    'kept.';
comment on column ff_event_family.family is 'completion, lease, suspension, signal, operator, worker or flow.';
comment on column ff_event_family.muted is
    'Types of events that are not written; * stands for all. Set by ff_set_event_family.';
comment on column ff_event_family.notify is
    'When subscribers are notified: at the commit of the event, by the next ff_tick, or never (off).';
comment on column ff_event_family.notified_event_id is 'The greatest event_id of the last notification by ff_tick.';
comment on column ff_event_family.retention_ms is 'How long events are kept, in ms.';
comment on column ff_event_family.trimmed_gen is
    'The generation of the last trimmed event. All events up to (trimmed_gen, trimmed_ord, trimmed_event_id) are '
    'deleted.';
comment on column ff_event_family.trimmed_ord is 'The ord of the last trimmed event; 0 before the first trim.';
comment on column ff_event_family.trimmed_event_id is 'The id of the last trimmed event; 0 before the first trim.';

insert into ff_event_family (family, notify) values
    ('completion', 'tick'), ('lease', 'tick'), ('suspension', 'commit'), ('signal', 'commit'),
    ('operator', 'commit'), ('worker', 'tick'), ('flow', 'tick');

-- All settings that an emitter reads, in one row, because each row read costs half as much as the insert.
create table ff_event_generation (
    id                boolean not null default true primary key check (id),
    gen               int     not null,
    system_identifier bigint  not null,
    muted             text[]  not null default '{}',
    notified          text[]  not null default '{signal,suspension,operator}'
);
comment on table ff_event_generation is
    'One row: the generation of the event order and the cluster it was counted in; a restored database needs a new '
    'generation.';
comment on column ff_event_generation.id is 'Always true: the table has one row.';
comment on column ff_event_generation.gen is
    'The current generation, which new events get. ff_rebase_events increases it.';
comment on column ff_event_generation.system_identifier is
    'The identifier of the cluster in which the generation was counted (pg_control_system).';
comment on column ff_event_generation.muted is 'A copy of ff_event_family.muted, as family/type.';
comment on column ff_event_generation.notified is 'The families that notify at commit, from ff_event_family.notify.';

insert into ff_event_generation (gen, system_identifier)
select 1, c.system_identifier from pg_control_system() c;

-- Each row of ff_event_log takes a block of 2048 ids: event_id - 1 to event_id + 2046. Cached values would let a later
-- event of an execution get a smaller id.
create sequence ff_event_id_seq as bigint increment 2048 start 2048 cache 1;

create type ff_event_wait as (
    suspension_id   uuid,
    waitpoint_id    uuid,
    signal_id       uuid,
    source_type     text,
    source_identity text,
    effect          text
);
comment on type ff_event_wait is 'The ids and source in an event about a suspension, waitpoint or signal.';

create type ff_event_batch as (
    span            int,
    first_id_ms     bigint,
    last_id_ms      bigint,
    execution_ids   uuid[],
    attempt_indexes int[],
    flow_ids        uuid[],
    lane_ids        text[],
    namespaces      text[],
    tag_sets        jsonb[],
    lease_ids       uuid[],
    lease_epochs    bigint[]
);
comment on type ff_event_batch is
    'The executions of a batch row. An array is NULL where the executions do not differ: the row has the value, or '
    'there is none. first_id_ms and last_id_ms: the times in the smallest and the greatest id; span: a length '
    'class, they are at most 1000 * 16 ^ span ms apart (ff__event_rows).';

-- One row per call. The view ff_event shows its events. A row with a batch is one event of each of its executions: that
-- of element i (from 0) has the id event_id + 2 * i. Few columns, because each costs about 1000 instructions, even if
-- NULL.
create table ff_event_log (
    ord                bigint not null,
    event_id           bigint not null,
    occurred_at_ms     bigint not null,
    execution_id       uuid,
    flow_id            uuid,
    lease_id           uuid,
    lease_epoch        bigint,
    gen                int    not null,
    attempt_index      int,
    family             text collate "C" not null,
    event_type         text collate "C" not null,
    lease_type         text collate "C",
    lease_reason       text,
    reason             text,
    lane_id            text collate "C",
    namespace          text collate "C",
    worker_id          text,
    worker_instance_id text,
    tags               jsonb,
    details            jsonb,
    wait               ff_event_wait,
    size               int,
    batch              ff_event_batch,
    primary key (family, gen, ord, event_id)
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1
);
alter sequence ff_event_id_seq owned by ff_event_log.event_id;
-- pglz on arrays of uuids costs more than the rest of the insert, and saves little.
alter table ff_event_log alter column batch set storage external;
comment on table ff_event_log is
    'The outbox of events, one row per call. Insert only, except for trimming. Read in the order (gen, ord, event_id), '
    'and only below the horizon of running transactions.';
comment on column ff_event_log.ord is
    'The place in the order: the number of the writing transaction, or of an earlier event of the same execution '
    'if that is greater.';
comment on column ff_event_log.event_id is 'The id of the event, unique in all families; of the first one of a batch.';
comment on column ff_event_log.occurred_at_ms is 'When it happened (Unix time in ms).';
comment on column ff_event_log.execution_id is 'The execution; NULL: none, or a batch.';
comment on column ff_event_log.flow_id is 'The flow of the execution, or the flow itself; NULL: none.';
comment on column ff_event_log.lease_id is 'The lease; NULL: the event is not about one.';
comment on column ff_event_log.lease_epoch is 'The number of the lease.';
comment on column ff_event_log.gen is 'The generation of the order, from ff_event_generation.';
comment on column ff_event_log.attempt_index is 'The attempt, from 0; NULL: none.';
comment on column ff_event_log.family is 'The family, of ff_event_family.';
comment on column ff_event_log.event_type is 'What happened; docs/events.md lists the types of each family.';
comment on column ff_event_log.lease_type is
    'The end of the lease that came with this completion: released or expired. It is an event of family lease, '
    'with the preceding id. NULL: none.';
comment on column ff_event_log.lease_reason is 'The reason for the end of the lease.';
comment on column ff_event_log.reason is 'Why it happened, as given by the caller or the engine; NULL: not given.';
comment on column ff_event_log.lane_id is 'The lane of the execution, or the lane itself; NULL: none.';
comment on column ff_event_log.namespace is 'The namespace of the execution, flow or worker; NULL: none.';
comment on column ff_event_log.worker_id is 'The worker of the lease, or the worker itself; NULL: none.';
comment on column ff_event_log.worker_instance_id is 'The process of that worker.';
comment on column ff_event_log.tags is 'The tags of the execution or flow at that time; NULL: none.';
comment on column ff_event_log.details is 'More values, by type of event; NULL: none.';
comment on column ff_event_log.wait is
    'The ids and the source of an event about a suspension, waitpoint or signal; NULL for other events.';
comment on column ff_event_log.size is 'How many executions batch holds; NULL: none.';
comment on column ff_event_log.batch is
    'The executions of a batch: an event for each; NULL: the row is about one execution, flow, lane or worker.';
create index ff_event_log_execution on ff_event_log (execution_id);
create index ff_event_log_span on ff_event_log (((batch).span), ((batch).last_id_ms), ((batch).first_id_ms))
    where size is not null;

-- The events of rows without a batch.
create view ff_event_single as
select l.ord, l.event_id, l.occurred_at_ms, l.execution_id, l.flow_id,
       case when l.family = 'lease' then l.lease_id end as lease_id, (l.wait).suspension_id, (l.wait).waitpoint_id,
       (l.wait).signal_id, case when l.family = 'lease' then l.lease_epoch end as lease_epoch, l.gen, l.attempt_index,
       get_byte(uuid_send(coalesce(l.execution_id, l.flow_id)), 15)::smallint as partition_key, l.family,
       l.event_type, l.lane_id, l.namespace,
       case when l.execution_id is null then l.tags else coalesce(l.tags, '{}') end as tags,
       case when l.family in ('lease', 'worker') then l.worker_id end as worker_id,
       case when l.family in ('lease', 'worker') then l.worker_instance_id end as worker_instance_id,
       (l.wait).source_type, (l.wait).source_identity,
       case when l.family = 'completion' then l.event_type end collate "default" as outcome,
       (l.wait).effect, l.reason, l.details
  from ff_event_log l
 where l.size is null;
comment on view ff_event_single is 'Part of ff_event: the events of rows without a batch.';

-- The ends of leases that came with the completion of one execution.
create view ff_event_single_end as
select l.ord, l.event_id - 1 as event_id, l.occurred_at_ms, l.execution_id, l.flow_id, l.lease_id,
       null::uuid as suspension_id, null::uuid as waitpoint_id, null::uuid as signal_id, l.lease_epoch, l.gen,
       l.attempt_index, get_byte(uuid_send(l.execution_id), 15)::smallint as partition_key,
       'lease'::text collate "C" as family, l.lease_type as event_type, l.lane_id, l.namespace,
       coalesce(l.tags, '{}') as tags, l.worker_id, l.worker_instance_id, null::text as source_type,
       null::text as source_identity, null::text as outcome, null::text as effect, l.lease_reason as reason,
       null::jsonb as details
  from ff_event_log l
 where l.size is null and l.family = 'completion' and l.lease_type is not null;
comment on view ff_event_single_end is
    'Part of ff_event: the ends of leases that came with the completion of one execution.';

-- The events of rows with a batch.
create view ff_event_batched as
select l.ord, l.event_id + 2 * (u.n - 1) as event_id, l.occurred_at_ms, u.execution_id,
       coalesce(u.flow_id, l.flow_id) as flow_id,
       case when l.family = 'lease' then coalesce(u.lease_id, l.lease_id) end as lease_id,
       null::uuid as suspension_id, null::uuid as waitpoint_id, null::uuid as signal_id,
       case when l.family = 'lease' then coalesce(u.lease_epoch, l.lease_epoch) end as lease_epoch, l.gen,
       coalesce(u.attempt_index, l.attempt_index) as attempt_index,
       get_byte(uuid_send(u.execution_id), 15)::smallint as partition_key, l.family, l.event_type,
       coalesce(u.lane_id, l.lane_id) as lane_id, coalesce(u.namespace, l.namespace) as namespace,
       coalesce(u.tags, '{}') as tags,
       case when l.family in ('lease', 'worker') then l.worker_id end as worker_id,
       case when l.family in ('lease', 'worker') then l.worker_instance_id end as worker_instance_id,
       null::text as source_type, null::text as source_identity,
       case when l.family = 'completion' then l.event_type end collate "default" as outcome, null::text as effect,
       l.reason, null::jsonb as details
  from ff_event_log l
 cross join lateral unnest((l.batch).execution_ids, (l.batch).attempt_indexes, (l.batch).flow_ids, (l.batch).lane_ids,
                           (l.batch).namespaces, (l.batch).tag_sets, (l.batch).lease_ids, (l.batch).lease_epochs)
       with ordinality
       u(execution_id, attempt_index, flow_id, lane_id, namespace, tags, lease_id, lease_epoch, n)
 where l.size is not null;
comment on view ff_event_batched is 'Part of ff_event: the events of rows with a batch.';

-- The ends of leases that came with the completions of batches.
create view ff_event_batched_end as
select l.ord, l.event_id + 2 * (u.n - 1) - 1 as event_id, l.occurred_at_ms, u.execution_id,
       coalesce(u.flow_id, l.flow_id) as flow_id, coalesce(u.lease_id, l.lease_id) as lease_id,
       null::uuid as suspension_id, null::uuid as waitpoint_id, null::uuid as signal_id,
       coalesce(u.lease_epoch, l.lease_epoch) as lease_epoch, l.gen,
       coalesce(u.attempt_index, l.attempt_index) as attempt_index,
       get_byte(uuid_send(u.execution_id), 15)::smallint as partition_key, 'lease'::text collate "C" as family,
       l.lease_type as event_type, coalesce(u.lane_id, l.lane_id) as lane_id,
       coalesce(u.namespace, l.namespace) as namespace, coalesce(u.tags, '{}') as tags, l.worker_id,
       l.worker_instance_id, null::text as source_type, null::text as source_identity, null::text as outcome,
       null::text as effect, l.lease_reason as reason, null::jsonb as details
  from ff_event_log l
 cross join lateral unnest((l.batch).execution_ids, (l.batch).attempt_indexes, (l.batch).flow_ids, (l.batch).lane_ids,
                           (l.batch).namespaces, (l.batch).tag_sets, (l.batch).lease_ids, (l.batch).lease_epochs)
       with ordinality
       u(execution_id, attempt_index, flow_id, lane_id, namespace, tags, lease_id, lease_epoch, n)
 where l.size is not null and l.family = 'completion' and l.lease_type is not null;
comment on view ff_event_batched_end is
    'Part of ff_event: the ends of leases that came with the completions of batches.';

-- The events, one row each. The four parts have the same types and collations, so that conditions reach their indexes.
create view ff_event as
select * from ff_event_single
union all
select * from ff_event_single_end
union all
select * from ff_event_batched
union all
select * from ff_event_batched_end;
comment on view ff_event is
    'The events, one row each. For the events of one execution use ff__event_rows: this view scans all batch rows.';
comment on column ff_event.ord is 'The place in the order, with gen and event_id.';
comment on column ff_event.event_id is 'The id of the event, unique in all families.';
comment on column ff_event.occurred_at_ms is 'When it happened (Unix time in ms).';
comment on column ff_event.execution_id is 'The execution; NULL: none.';
comment on column ff_event.flow_id is 'The flow of the execution, or the flow itself; NULL: none.';
comment on column ff_event.lease_id is 'The lease, in family lease; otherwise NULL.';
comment on column ff_event.suspension_id is 'The suspension; NULL: none.';
comment on column ff_event.waitpoint_id is 'The waitpoint; NULL: none.';
comment on column ff_event.signal_id is 'The signal; NULL: none.';
comment on column ff_event.lease_epoch is 'The number of the lease, in family lease; otherwise NULL.';
comment on column ff_event.gen is 'The generation of the order, from ff_event_generation.';
comment on column ff_event.attempt_index is 'The attempt, from 0; NULL: none.';
comment on column ff_event.partition_key is 'The last byte of execution_id, or of flow_id; NULL: neither is set.';
comment on column ff_event.family is 'The family, of ff_event_family.';
comment on column ff_event.event_type is 'What happened; docs/events.md lists the types of each family.';
comment on column ff_event.lane_id is 'The lane of the execution, or the lane itself; NULL: none.';
comment on column ff_event.namespace is 'The namespace of the execution, flow or worker; NULL: none.';
comment on column ff_event.tags is 'The tags of the execution or flow at that time; NULL: the event has neither.';
comment on column ff_event.worker_id is 'The worker, in the families lease and worker; otherwise NULL.';
comment on column ff_event.worker_instance_id is 'The process of that worker.';
comment on column ff_event.source_type is 'The kind of sender of a signal; NULL for other events.';
comment on column ff_event.source_identity is 'The sender of a signal, as given; NULL for other events.';
comment on column ff_event.outcome is 'How the execution ended, in family completion; otherwise NULL.';
comment on column ff_event.effect is 'What a signal did: buffered, appended or satisfied; NULL for other events.';
comment on column ff_event.reason is 'Why it happened, as given by the caller or the engine; NULL: not given.';
comment on column ff_event.details is 'More values, by type of event; NULL: none.';

-- The same, each part ordered, so that the newest events are merged from the ends of the indexes.
create view ff_event_newest as
(select * from ff_event_single order by gen desc, ord desc, event_id desc)
union all
(select * from ff_event_single_end order by gen desc, ord desc, event_id desc)
union all
(select * from ff_event_batched order by gen desc, ord desc, event_id desc)
union all
(select * from ff_event_batched_end order by gen desc, ord desc, event_id desc);
comment on view ff_event_newest is 'ff_event for reading the newest: its parts are ordered.';

-- The other views have the same columns.
do $comments$
declare
    v_comment text;
begin
    for v_comment in
        select format('comment on column %I.%I is %L', v.view, a.attname, col_description(a.attrelid, a.attnum))
          from (values ('ff_event_single'), ('ff_event_single_end'), ('ff_event_batched'), ('ff_event_batched_end'),
                       ('ff_event_newest')) v(view)
          join pg_attribute a on a.attrelid = 'ff_event'::regclass and a.attnum > 0
    loop
        execute v_comment;
    end loop;
end
$comments$;
