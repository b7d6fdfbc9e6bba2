-- Schedules: executions created at recurring times.

set local lock_timeout = '10s';

-- A parsed cron expression: the allowed values of each field, in order. Internal.
create type ff_cron as (
    minutes   int[],
    hours     int[],
    days      int[],
    months    int[],
    weekdays  int[],
    either    boolean -- both day fields are restricted: a day needs to match one of them
);

-- due_at_ms is when a sweep processes it: the next tick, or later after a failure; NULL while it is paused or ended.
-- first_at_ms is the start of its ticks: no tick is before it, and an interval counts from it.
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
create index ff_schedule_due_at on ff_schedule (due_at_ms) where due_at_ms is not null;

insert into ff_reconciler (run_order, name, interval_ms) values (21, 'fire_schedules', 1000);
