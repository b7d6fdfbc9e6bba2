-- Schedules: executions created at recurring times.

set local lock_timeout = '10s';

create type ff_cron as (
    minutes   int[],
    hours     int[],
    days      int[],
    months    int[],
    weekdays  int[],
    either    boolean -- both day fields are restricted: a day needs to match one of them
);
comment on type ff_cron is 'A parsed cron expression: the allowed values of each field, in order. Internal.';

create table ff_schedule (
    schedule_id           text collate "C" not null primary key,
    next_fire_at_ms       bigint,
    due_at_ms             bigint,
    interval_ms           bigint,
    first_at_ms           bigint not null,
    start_at_ms           bigint,
    end_at_ms             bigint,
    grace_ms              bigint not null,
    fire_count            bigint not null default 0,
    last_fire_at_ms       bigint,
    last_fired_at_ms      bigint,
    last_execution_id     uuid,
    last_error_at_ms      bigint,
    paused_at_ms          bigint,
    created_at_ms         bigint not null,
    updated_at_ms         bigint not null,
    error_count           int    not null default 0,
    max_catch_up          int    not null,
    priority              int,
    catch_up              text collate "C" not null,
    cron                  text,
    time_zone             text   not null,
    lane_id               text collate "C" not null,
    namespace             text collate "C" not null,
    execution_kind        text   not null,
    creator               text   not null,
    payload_encoding      text,
    last_error            text,
    paused_reason         text,
    payload               bytea,
    required_capabilities text[] not null,
    policy                jsonb  not null,
    tags                  jsonb  not null,
    constraint ff_schedule_timing check (num_nonnulls(cron, interval_ms) = 1),
    constraint ff_schedule_catch_up check (catch_up in ('skip', 'latest', 'all')),
    constraint ff_schedule_due check (
        (due_at_ms is null) = (next_fire_at_ms is null or paused_at_ms is not null) and due_at_ms >= next_fire_at_ms)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.05);
comment on table ff_schedule is
    'Schedules: when to fire, what to create, the last result. Read one through ff_describe_schedule.';
comment on column ff_schedule.schedule_id is 'The name of the schedule.';
comment on column ff_schedule.next_fire_at_ms is 'The next tick (Unix time in ms); NULL: it has ended.';
comment on column ff_schedule.due_at_ms is
    'When a sweep processes the next tick (Unix time in ms): later than it after a failure; NULL: paused or '
    'ended.';
comment on column ff_schedule.interval_ms is 'The time between two ticks, in ms; NULL: cron is set.';
comment on column ff_schedule.first_at_ms is
    'The start of its ticks (Unix time in ms): none is before it, and an interval counts from it.';
comment on column ff_schedule.start_at_ms is 'The start as given by the caller (Unix time in ms); NULL: not given.';
comment on column ff_schedule.end_at_ms is 'No tick is at or after this time (Unix time in ms); NULL: no end.';
comment on column ff_schedule.grace_ms is 'How late a tick may be fired with catch_up skip, in ms.';
comment on column ff_schedule.fire_count is 'How many ticks were fired.';
comment on column ff_schedule.last_fire_at_ms is 'The last tick that was fired (Unix time in ms); NULL: none.';
comment on column ff_schedule.last_fired_at_ms is 'When a tick was last fired (Unix time in ms); NULL: never.';
comment on column ff_schedule.last_execution_id is 'The execution of the last tick; NULL: none.';
comment on column ff_schedule.last_error_at_ms is
    'When it last could not be fired (Unix time in ms); NULL after success.';
comment on column ff_schedule.paused_at_ms is 'When it was paused (Unix time in ms); NULL: it is not.';
comment on column ff_schedule.created_at_ms is 'When it was created (Unix time in ms).';
comment on column ff_schedule.updated_at_ms is 'When its definition was last changed (Unix time in ms).';
comment on column ff_schedule.error_count is 'How often it could not be fired since the last success.';
comment on column ff_schedule.max_catch_up is 'The greatest number of missed ticks fired with catch_up all.';
comment on column ff_schedule.priority is 'The priority of its executions; NULL: as the policy says.';
comment on column ff_schedule.catch_up is 'What happens to missed ticks: skip, latest (only the last one) or all.';
comment on column ff_schedule.cron is 'The cron expression; NULL: interval_ms is set.';
comment on column ff_schedule.time_zone is 'The time zone of cron.';
comment on column ff_schedule.lane_id is 'The lane of its executions.';
comment on column ff_schedule.namespace is 'The namespace of its executions.';
comment on column ff_schedule.execution_kind is 'The kind of its executions.';
comment on column ff_schedule.creator is 'The creator of its executions.';
comment on column ff_schedule.payload_encoding is 'The encoding of the payload; NULL: not given.';
comment on column ff_schedule.last_error is 'Why it last could not be fired; NULL after success.';
comment on column ff_schedule.paused_reason is
    'Why it was paused, as given by the caller; NULL: not given, or not paused.';
comment on column ff_schedule.payload is 'The payload of its executions; NULL: none.';
comment on column ff_schedule.required_capabilities is 'The capabilities that its executions require.';
comment on column ff_schedule.policy is 'The policy of its executions, as given.';
comment on column ff_schedule.tags is 'The tags of its executions, which also get schedule.id and schedule.fire_at_ms.';
create index ff_schedule_due_at on ff_schedule (due_at_ms) where due_at_ms is not null;

insert into ff_reconciler (run_order, name, interval_ms) values (21, 'fire_schedules', 1000);
