-- Events: one outbox for every family, written in the transaction of the change.

set local lock_timeout = '10s';

create table ff_event_family (
    family            text collate "C" not null primary key
        check (family in ('completion', 'lease', 'suspension', 'signal', 'operator', 'worker', 'flow')),
    gen               int     not null default 1,
    muted             text[]  not null default '{}',
    notify            text collate "C" not null check (notify in ('commit', 'tick', 'off')),
    notified_event_id bigint  not null default 0,
    retention_ms      bigint  not null default 604800000,
    trimmed_gen       int     not null default 0,
    trimmed_ord       bigint  not null default 0,
    trimmed_event_id  bigint  not null default 0
);
comment on table ff_event_family is
    'Per family of events: types that are not written (muted), when subscribers are notified, how long events are kept. gen is that of ff_event_generation, so that an emitter reads one row.';

insert into ff_event_family (family, notify) values
    ('completion', 'tick'), ('lease', 'tick'), ('suspension', 'commit'), ('signal', 'commit'),
    ('operator', 'commit'), ('worker', 'tick'), ('flow', 'tick');

create table ff_event_generation (
    id                boolean not null default true primary key check (id),
    gen               int     not null,
    system_identifier bigint  not null,
    plain             boolean not null default true
);
comment on table ff_event_generation is
    'One row: the generation of the event order and the cluster it was counted in; a restored database needs a new generation. plain: no lease or completion event is muted or rung for at commit, so their emitter need not look at the families.';

insert into ff_event_generation (gen, system_identifier)
select 1, c.system_identifier from pg_control_system() c;

-- Cached values would let a later event of one execution get a smaller id.
create sequence ff_event_id_seq as bigint cache 1;

create table ff_event (
    ord                bigint not null,
    event_id           bigint not null default nextval('ff_event_id_seq'),
    occurred_at_ms     bigint not null,
    execution_id       uuid,
    flow_id            uuid,
    lease_id           uuid,
    suspension_id      uuid,
    waitpoint_id       uuid,
    signal_id          uuid,
    lease_epoch        bigint,
    gen                int    not null,
    attempt_index      int,
    partition_key      smallint,
    family             text collate "C" not null,
    event_type         text collate "C" not null,
    lane_id            text collate "C",
    namespace          text collate "C",
    tags               jsonb,
    worker_id          text,
    worker_instance_id text,
    source_type        text,
    source_identity    text,
    outcome            text,
    effect             text,
    reason             text,
    details            jsonb,
    primary key (family, gen, ord, event_id)
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.1
);
alter sequence ff_event_id_seq owned by ff_event.event_id;
comment on table ff_event is
    'The outbox of events. Insert only. Read in the order (gen, ord, event_id), and only below the horizon of running transactions.';
create index ff_event_execution on ff_event (execution_id, event_id) where execution_id is not null;
