-- Maintenance: the steps of ff_tick, their failed rows, and the index that finds expired workers.

set local lock_timeout = '10s';

create table ff_reconciler (
    name           text collate "C" not null primary key,
    run_order      int     not null,
    interval_ms    bigint  not null check (interval_ms between 0 and 86400000),
    last_run_at_ms bigint,
    last_processed int     not null default 0,
    last_errors    int     not null default 0,
    enabled        boolean not null default true,
    more           boolean not null default false
) with (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_reconciler is
    'The steps of maintenance: how often each runs, whether it is switched on, what its last run did. Changed by '
    'ff_set_reconciler.';
comment on column ff_reconciler.name is
    'The name of the step in ff_tick and ff_set_reconciler. Its row is locked while the step runs.';
comment on column ff_reconciler.run_order is 'Its position among the steps of one tick.';
comment on column ff_reconciler.interval_ms is 'The shortest time between two runs, in ms.';
comment on column ff_reconciler.last_run_at_ms is 'When it last ran (Unix time in ms); NULL: never.';
comment on column ff_reconciler.last_processed is 'How many rows the last run processed.';
comment on column ff_reconciler.last_errors is 'How many rows failed in the last run.';
comment on column ff_reconciler.enabled is 'Whether ff_tick runs it.';
comment on column ff_reconciler.more is
    'Whether the last run left due rows: the next one does not wait for the interval.';

insert into ff_reconciler (run_order, name, interval_ms) values
    (1, 'sweep_expired_leases', 1500),
    (2, 'sweep_attempt_timeouts', 2000),
    (3, 'sweep_deadlines', 5000),
    (4, 'sweep_delayed', 750),
    (5, 'sweep_suspensions', 2000),
    (6, 'sweep_waitpoints', 5000),
    (7, 'drain_cancel_backlog', 5000),
    (8, 'drain_sibling_cancels', 1000),
    (9, 'dispatch_completions', 1000),
    (10, 'sweep_claim_grants', 2000),
    (11, 'sweep_admissions', 1000),
    (12, 'sweep_budget_resets', 15000),
    (13, 'sweep_budget_breaches', 1000),
    (14, 'sweep_terminal_spend', 5000),
    (15, 'project_flows', 15000),
    (16, 'sweep_workers', 30000),
    (17, 'sweep_expired', 60000),
    (18, 'trim_retention', 60000),
    (19, 'trim_streams', 10000),
    (20, 'trim_events', 60000);

create table ff_reconciler_error (
    name             text collate "C" not null,
    row_key          text collate "C" not null,
    next_retry_at_ms bigint not null,
    attempts         int    not null,
    last_error       text   not null,
    failing_since_ms bigint,
    primary key (name, row_key)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1);
comment on table ff_reconciler_error is
    'Rows that a step of maintenance could not process, retried after growing delays. row_key names the row; empty: '
    'the step itself. Usually empty.';
comment on column ff_reconciler_error.name is 'The step of maintenance.';
comment on column ff_reconciler_error.row_key is 'The id of the row that failed; empty: the step itself.';
comment on column ff_reconciler_error.next_retry_at_ms is 'When it is tried again (Unix time in ms).';
comment on column ff_reconciler_error.attempts is 'How often it has failed.';
comment on column ff_reconciler_error.last_error is 'The SQLSTATE and message of the last failure.';
comment on column ff_reconciler_error.failing_since_ms is 'When it failed first (Unix time in ms).';
create index ff_reconciler_error_retry on ff_reconciler_error (name, next_retry_at_ms);

create index ff_worker_registry_lapse on ff_worker_registry ((last_heartbeat_ms + liveness_ttl_ms));

-- Flows to be projected: those never projected, by this index; projected ones that may change, by the index of the
-- summaries. Flows that were projected after their end are in neither.
alter table ff_flow_core add column projected boolean not null default false;
comment on column ff_flow_core.projected is
    'Whether it was counted into ff_flow_summary since it was created or reopened.';
create index ff_flow_core_unprojected on ff_flow_core (created_at_ms) where node_count > 0 and not projected;
alter table ff_flow_summary add column final boolean not null default false;
comment on column ff_flow_summary.final is 'Whether the flow had ended: it is not counted again.';
drop index ff_flow_summary_projected;
create index ff_flow_summary_projected on ff_flow_summary (projected_at_ms) where not final;

-- Flows by their retention, stored when the last member has ended.
alter table ff_flow_core add column retention_ms bigint not null default -1;
comment on column ff_flow_core.retention_ms is
    'The longest retention of its members after the end, in ms, if each has its own; -1: as the settings say. '
    'Written when the last member has ended.';
drop index ff_flow_core_terminal;
create index ff_flow_core_terminal on ff_flow_core (retention_ms, unsuccessful, terminal_at_ms)
    where terminal_at_ms is not null;

create type ff_step_run as (
    step       text,
    processed  int,
    errors     int,
    more       boolean,
    elapsed_ms bigint
);
comment on type ff_step_run is 'The result of a step in one ff_tick. Internal.';
