-- Admission and budgets: limits on starts per window, on concurrency, and on usage.

set local lock_timeout = '10s';

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
comment on type ff_admission is
    'The result of an admission: the executions that may run (already_admitted if none of them had to be charged), '
    'and those that may not (denied, see ff__check_admissions); for the first of these, the reason and when to '
    'retry. now_ms is the time used. Internal.';

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
comment on column ff_quota_policy.quota_policy_id is
    'The name of the policy. Its row is locked while executions are admitted.';
comment on column ff_quota_policy.window_seconds is 'The length of the sliding window, in seconds.';
comment on column ff_quota_policy.max_requests_per_window is 'How many may start within a window; 0: no limit.';
comment on column ff_quota_policy.max_concurrent is
    'How many may run at once; 0: no limit. There is no counter: leases and reservations are counted.';
comment on column ff_quota_policy.jitter_ms is
    'The greatest random time added to the retry time of a denied start, in ms.';
comment on column ff_quota_policy.created_at_ms is 'When it was created (Unix time in ms).';
comment on column ff_quota_policy.updated_at_ms is 'When it was last changed (Unix time in ms).';

create table ff_quota_window (
    quota_policy_id text collate "C" not null,
    execution_id    uuid   not null,
    attempt_index   int    not null,
    admitted_at_ms  bigint not null,
    primary key (quota_policy_id, execution_id, attempt_index)
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
comment on table ff_quota_window is
    'Admissions under a policy: the sliding window is counted from these rows. Deleted when they have left the window.';
comment on column ff_quota_window.quota_policy_id is 'The policy.';
comment on column ff_quota_window.execution_id is 'The admitted execution.';
comment on column ff_quota_window.attempt_index is 'The admitted attempt, from 0.';
comment on column ff_quota_window.admitted_at_ms is 'When it was admitted (Unix time in ms).';
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
comment on column ff_quota_reservation.quota_policy_id is 'The policy.';
comment on column ff_quota_reservation.execution_id is 'The admitted execution.';
comment on column ff_quota_reservation.attempt_index is 'The admitted attempt, from 0.';
comment on column ff_quota_reservation.admitted_at_ms is 'When it was admitted (Unix time in ms).';
comment on column ff_quota_reservation.expires_at_ms is 'Until when the slot is held (Unix time in ms).';
create index ff_quota_reservation_expires on ff_quota_reservation (expires_at_ms);
create index ff_quota_reservation_execution on ff_quota_reservation (execution_id);

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
comment on column ff_budget.budget_id is 'The name of the budget. Its row is locked while usage is counted.';
comment on column ff_budget.reset_interval_ms is 'The time between two resets, in ms; 0: only by ff_reset_budget.';
comment on column ff_budget.next_reset_at_ms is 'When ff_sweep_budget_resets resets it (Unix time in ms); NULL: never.';
comment on column ff_budget.last_reset_at_ms is 'When it was last reset (Unix time in ms); NULL: never.';
comment on column ff_budget.reset_epoch is
    'The number of the period between two resets: spend of an earlier one is not released.';
comment on column ff_budget.last_breach_at_ms is
    'When usage last went above a hard limit (Unix time in ms); NULL: never.';
comment on column ff_budget.created_at_ms is 'When it was created (Unix time in ms).';
comment on column ff_budget.updated_at_ms is 'When its row was last changed (Unix time in ms).';
comment on column ff_budget.reset_count is 'How often it was reset.';
comment on column ff_budget.breach_count is 'How often usage went above a hard limit.';
comment on column ff_budget.soft_breach_count is 'How often usage went above a soft limit.';
comment on column ff_budget.release_on_terminal is 'Whether the spend of an execution is released when it ends.';
comment on column ff_budget.breached is
    'Whether a hard limit was met and on_hard_limit is not fail: attached executions are not admitted until a '
    'reset or a higher limit.';
comment on column ff_budget.enforcement_mode is 'strict rejects usage above a hard limit; warn counts and reports it.';
comment on column ff_budget.on_hard_limit is
    'What happens to attached executions at a hard limit: fail (nothing more), block, cancel_pending or '
    'cancel_all.';
comment on column ff_budget.on_soft_limit is 'Whether usage above a soft limit is reported: warn or none.';
comment on column ff_budget.scope_type is 'What the budget is for: a label of its creator.';
comment on column ff_budget.scope_id is 'Which one of scope_type: a label of its creator.';
comment on column ff_budget.last_breach_dim is 'The dimension of the last breach; NULL: none.';
create index ff_budget_reset on ff_budget (next_reset_at_ms) where next_reset_at_ms is not null;
create index ff_budget_release on ff_budget (budget_id) where release_on_terminal;

create table ff_budget_usage (
    budget_id     text collate "C" not null,
    dimension     text collate "C" not null,
    hard_limit    bigint,
    soft_limit    bigint,
    current_value bigint not null default 0,
    lowered       boolean not null default false,
    primary key (budget_id, dimension)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_budget_usage is
    'One row per dimension of a budget: its limits (NULL: none) and the usage since the last reset.';
comment on column ff_budget_usage.budget_id is 'The budget.';
comment on column ff_budget_usage.dimension is 'What is counted, as named by callers.';
comment on column ff_budget_usage.hard_limit is 'The limit; NULL: none.';
comment on column ff_budget_usage.soft_limit is 'The limit above which usage is only reported; NULL: none.';
comment on column ff_budget_usage.current_value is 'The usage since the last reset.';
comment on column ff_budget_usage.lowered is 'Whether the hard limit was set below the usage.';

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
comment on column ff_budget_usage_by_exec.budget_id is 'The budget.';
comment on column ff_budget_usage_by_exec.execution_id is 'The execution that spent; it may not exist yet.';
comment on column ff_budget_usage_by_exec.dimension is 'What was spent.';
comment on column ff_budget_usage_by_exec.reset_epoch is 'The value of ff_budget.reset_epoch at that time.';
comment on column ff_budget_usage_by_exec.delta_total is 'How much it spent in that period.';
comment on column ff_budget_usage_by_exec.unbound is
    'Whether it was spent before the execution existed, on a budget with release_on_terminal: ff_execution.spends '
    'is not set then.';
create index ff_budget_usage_by_exec_execution on ff_budget_usage_by_exec (execution_id);
create index ff_budget_usage_by_exec_unbound on ff_budget_usage_by_exec (budget_id, execution_id) where unbound;

create table ff_budget_breach (
    budget_id      text collate "C" not null primary key,
    breached_at_ms bigint not null,
    action         text collate "C" not null check (action in ('cancel_pending', 'cancel_all'))
);
comment on table ff_budget_breach is
    'Breached budgets whose attached executions are still to be cancelled: the work list of ff_sweep_budget_breaches.';
comment on column ff_budget_breach.budget_id is 'The budget.';
comment on column ff_budget_breach.breached_at_ms is 'When it was breached (Unix time in ms).';
comment on column ff_budget_breach.action is 'Which attached executions are cancelled: cancel_pending or cancel_all.';

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
comment on column ff_budget_usage_dedup.budget_id is 'The budget.';
comment on column ff_budget_usage_dedup.dedup_key is 'The key of the report, as given by the caller.';
comment on column ff_budget_usage_dedup.current_usage is 'The usage that the report returned; NULL: it returned none.';
comment on column ff_budget_usage_dedup.limit_value is 'The limit that the report returned; NULL: it returned none.';
comment on column ff_budget_usage_dedup.expires_at_ms is 'When the key is forgotten (Unix time in ms).';
comment on column ff_budget_usage_dedup.deltas_hash is
    'The sha256 of the reported amounts: a repetition must have the same one.';
comment on column ff_budget_usage_dedup.outcome is 'What the report returned: ok, soft_breach or hard_breach.';
comment on column ff_budget_usage_dedup.dimension is 'The dimension that the report returned; NULL: it returned none.';
create index ff_budget_usage_dedup_expires on ff_budget_usage_dedup (expires_at_ms);
