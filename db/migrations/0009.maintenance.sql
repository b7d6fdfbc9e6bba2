-- Maintenance: the steps of ff_tick, what failed in them, and the index that finds lapsed workers.

set local lock_timeout = '10s';

-- The row is the gate of its step: whoever holds it runs the step. more: the last run left something, so the next one
-- need not wait for the interval. resume_from_ms and rewind_at_ms are used while rows of the step are put off
-- (ff_reconciler_error): everything due before resume_from_ms is done or put off, so that the scan need not pass over
-- thousands of those; what came in behind it is found when the scan starts from the beginning, at rewind_at_ms.
create table ff_reconciler (
    name           text collate "C" not null primary key,
    run_order      int     not null,
    interval_ms    bigint  not null check (interval_ms between 0 and 86400000),
    last_run_at_ms bigint,
    resume_from_ms bigint  not null default 0,
    rewind_at_ms   bigint  not null default 0,
    last_processed int     not null default 0,
    last_errors    int     not null default 0,
    enabled        boolean not null default true,
    more           boolean not null default false
) with (fillfactor = 20, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_reconciler is
    'The steps of maintenance: how often each runs, whether it is switched on, what its last run did. Changed by ff_set_reconciler.';

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
    'Rows that a step of maintenance could not process, put off with growing distance until it can. row_key names the row; an empty one, the step itself. Usually empty.';
create index ff_reconciler_error_retry on ff_reconciler_error (name, next_retry_at_ms);

create index ff_worker_registry_lapse on ff_worker_registry ((last_heartbeat_ms + liveness_ttl_ms));

-- Which flows are still to be projected: those never projected, by this index, then the projected ones that may change,
-- by the index of the summaries. Flows that have ended and were projected since are in neither.
alter table ff_flow_core add column projected boolean not null default false;
create index ff_flow_core_unprojected on ff_flow_core (created_at_ms) where node_count > 0 and not projected;
alter table ff_flow_summary add column final boolean not null default false;
drop index ff_flow_summary_projected;
create index ff_flow_summary_projected on ff_flow_summary (projected_at_ms) where not final;

-- One run of a step: what it looks for and what it has done so far. room is how many rows it may still take, from_ms where
-- it starts to look; full says that there are more than it took, busy_ms is the due time of the first row that somebody
-- else had locked, moved how many rows were not, putting_off whether any row of the step is put off. Internal.
create type ff_sweep as (
    name         text,
    now_ms       bigint,
    retention_ms bigint,
    retention_failed_ms bigint,
    from_ms      bigint,
    room         int,
    keys         text[],
    due_ms       bigint[],
    seen         text[],
    passes       int,
    again        boolean,
    last_ms      bigint,
    full_        boolean,
    retried_full boolean,
    retrying     boolean,
    putting_off  boolean,
    processed    int,
    errors       int,
    moved        int,
    busy_ms      bigint
);

-- What a step did in one ff_tick. Internal.
create type ff_step_run as (
    step       text,
    processed  int,
    errors     int,
    more       boolean,
    elapsed_ms bigint
);
