-- Maintenance: the steps of ff_tick, their failed rows, and the index that finds expired workers.

set local lock_timeout = '10s';

-- The row is the lock of its step: the transaction that has locked it runs the step. more: the last run left due rows,
-- so the next one does not wait for the interval.
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
create index ff_reconciler_error_retry on ff_reconciler_error (name, next_retry_at_ms);

create index ff_worker_registry_lapse on ff_worker_registry ((last_heartbeat_ms + liveness_ttl_ms));

-- Flows to be projected: those never projected, by this index; projected ones that may change, by the index of the
-- summaries. Flows that were projected after their end are in neither.
alter table ff_flow_core add column projected boolean not null default false;
create index ff_flow_core_unprojected on ff_flow_core (created_at_ms) where node_count > 0 and not projected;
alter table ff_flow_summary add column final boolean not null default false;
drop index ff_flow_summary_projected;
create index ff_flow_summary_projected on ff_flow_summary (projected_at_ms) where not final;

-- Flows by their retention, stored when the last member has ended. retention_ms: the longest of its members' if each
-- has its own, else -1: by the settings. unsuccessful: a member without its own ended failed, cancelled or expired, or
-- the flow was cancelled and has no members, or live ones.
alter table ff_flow_core add column retention_ms bigint not null default -1;
drop index ff_flow_core_terminal;
create index ff_flow_core_terminal on ff_flow_core (retention_ms, unsuccessful, terminal_at_ms)
    where terminal_at_ms is not null;

-- The result of a step in one ff_tick. Internal.
create type ff_step_run as (
    step       text,
    processed  int,
    errors     int,
    more       boolean,
    elapsed_ms bigint
);
