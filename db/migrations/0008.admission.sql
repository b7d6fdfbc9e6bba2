-- Admission and budgets: limits on starts per window, on concurrency, and on usage.

set local lock_timeout = '10s';

-- The result of an admission: the executions that may run (already_admitted if none of them had to be charged), and
-- those that may not (denied, see ff__check_admissions); for the first of these, the reason and when to retry. now_ms
-- is the time used. Internal.
create type ff_admission as (
    admitted           uuid[],
    denied             uuid[],
    outcome            text,
    quota_policy_id    text,
    budget_id          text,
    retry_after_ms     bigint,
    active_concurrency bigint,
    window_count       bigint,
    now_ms             bigint
);

-- There is no concurrency counter: running executions are counted from the leases. The row is the lock of admission.
create table ff_quota_policy (
    quota_policy_id         text collate "C" not null primary key,
    window_seconds          bigint not null check (window_seconds >= 0),
    max_requests_per_window bigint not null check (max_requests_per_window >= 0),
    max_concurrent          bigint not null check (max_concurrent >= 0),
    jitter_ms               bigint not null check (jitter_ms >= 0),
    created_at_ms           bigint not null,
    updated_at_ms           bigint not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_quota_policy is
    'Quota policies: maximum admissions per sliding window, maximum at once. 0 is unlimited. Read one through '
    'ff_read_quota_policy_limits.';

create table ff_quota_window (
    quota_policy_id text collate "C" not null,
    execution_id    uuid   not null,
    attempt_index   int    not null,
    admitted_at_ms  bigint not null,
    primary key (quota_policy_id, execution_id, attempt_index)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
comment on table ff_quota_window is
    'Admissions under a policy: the sliding window is counted from these rows. Deleted when they have left the window.';
create index ff_quota_window_admitted on ff_quota_window (quota_policy_id, admitted_at_ms);

create table ff_quota_reservation (
    quota_policy_id text collate "C" not null,
    execution_id    uuid   not null,
    attempt_index   int    not null,
    admitted_at_ms  bigint not null,
    expires_at_ms   bigint not null,
    primary key (quota_policy_id, execution_id)
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.05);
comment on table ff_quota_reservation is
    'Slots held for executions that were admitted and do not run yet. A slot counts until it expires.';
create index ff_quota_reservation_expires on ff_quota_reservation (expires_at_ms);
create index ff_quota_reservation_execution on ff_quota_reservation (execution_id);

-- The row is the lock of usage counting.
create table ff_budget (
    budget_id           text collate "C" not null primary key,
    reset_interval_ms   bigint  not null check (reset_interval_ms >= 0),
    next_reset_at_ms    bigint,
    last_reset_at_ms    bigint,
    reset_epoch         bigint  not null default 0,
    last_breach_at_ms   bigint,
    created_at_ms       bigint  not null,
    updated_at_ms       bigint  not null,
    reset_count         int     not null default 0,
    breach_count        int     not null default 0,
    soft_breach_count   int     not null default 0,
    release_on_terminal boolean not null,
    breached            boolean not null default false,
    enforcement_mode    text collate "C" not null check (enforcement_mode in ('strict', 'warn')),
    on_hard_limit       text collate "C" not null
        check (on_hard_limit in ('fail', 'block', 'cancel_pending', 'cancel_all')),
    on_soft_limit       text collate "C" not null check (on_soft_limit in ('warn', 'none')),
    scope_type          text    not null,
    scope_id            text    not null,
    last_breach_dim     text
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_budget is
    'Budgets: limits on the usage of attached executions, by dimension. Read one through ff_get_budget_status.';
create index ff_budget_reset on ff_budget (next_reset_at_ms) where next_reset_at_ms is not null;
create index ff_budget_release on ff_budget (budget_id) where release_on_terminal;

create table ff_budget_usage (
    budget_id     text collate "C" not null,
    dimension     text collate "C" not null,
    hard_limit    bigint,
    soft_limit    bigint,
    current_value bigint not null default 0,
    lowered       boolean not null default false, -- the hard limit was set below the usage
    primary key (budget_id, dimension)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_budget_usage is
    'One row per dimension of a budget: its limits (NULL: none) and the usage since the last reset.';

create table ff_budget_usage_by_exec (
    budget_id    text collate "C" not null,
    execution_id uuid   not null,
    dimension    text collate "C" not null,
    reset_epoch  bigint not null,
    delta_total  bigint not null,
    unbound      boolean not null default false,
    primary key (budget_id, execution_id, dimension, reset_epoch)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
comment on table ff_budget_usage_by_exec is
    'The ledger: spend of each execution by ff_record_spend, which ff_release_budget can release.';
create index ff_budget_usage_by_exec_execution on ff_budget_usage_by_exec (execution_id);
comment on column ff_budget_usage_by_exec.unbound is
    'Whether it was spent before the execution existed, on a budget with release_on_terminal: spends is not set then.';
create index ff_budget_usage_by_exec_unbound on ff_budget_usage_by_exec (budget_id, execution_id) where unbound;

create table ff_budget_breach (
    budget_id      text collate "C" not null primary key,
    breached_at_ms bigint not null,
    action         text collate "C" not null check (action in ('cancel_pending', 'cancel_all'))
);
comment on table ff_budget_breach is
    'Breached budgets whose attached executions are still to be cancelled: the work list of ff_sweep_budget_breaches.';

create table ff_budget_usage_dedup (
    budget_id     text collate "C" not null,
    dedup_key     text collate "C" not null,
    current_usage bigint,
    limit_value   bigint,
    expires_at_ms bigint not null,
    deltas_hash   bytea  not null,
    outcome       text   not null check (outcome in ('ok', 'soft_breach', 'hard_breach')),
    dimension     text,
    primary key (budget_id, dedup_key)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
comment on table ff_budget_usage_dedup is
    'Applied usage reports by their key, for a day: a repeat returns already_applied. Rejected ones are not recorded.';
create index ff_budget_usage_dedup_expires on ff_budget_usage_dedup (expires_at_ms);
