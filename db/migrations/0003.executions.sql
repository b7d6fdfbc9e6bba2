-- Executions: the hot row, its cold input, attempts, grants, idempotency keys, lanes, workers.

set local lock_timeout = '10s';

-- What a worker proves when it speaks for an execution. Internal: no public signature shows it.
create type ff_fence as (
    execution_id  uuid,
    wire_id       text,
    attempt_index int,
    lease_id      uuid,
    lease_epoch   bigint,
    attempt_id    uuid
);

-- What an operation knows of an execution it has locked: the columns that decide, and its own time and place in the
-- event order. granted says whether it has a grant (live or not), loose_ends whether waitpoints or a stream hang off it,
-- limited whether a quota policy, budgets or a reservation do;
-- tags are NULL until an operation needs those of a tagged one; handle_kind and attempt_type are what a mint gave. Narrow on
-- purpose: every column that is carried costs on every call. Internal.
create type ff_exec as (
    execution_id          uuid,
    partition_key         smallint,
    flow_id               uuid,
    namespace             text,
    lane_id               text,
    priority              int,
    lifecycle_phase       text,
    ownership_state       text,
    eligibility_state     text,
    attempt_state         text,
    public_state          text,
    current_attempt_index int,
    current_attempt_id    uuid,
    total_attempt_count   int,
    retry_count           int,
    lease_reclaim_count   int,
    lease_id              uuid,
    lease_epoch           bigint,
    lease_expires_at_ms   bigint,
    attempt_timeout_at_ms bigint,
    attempt_remaining_ms  bigint,
    deadline_at_ms        bigint,
    delay_until_ms        bigint,
    worker_id             text,
    worker_instance_id    text,
    attempt_timeout_ms    bigint,
    granted               boolean,
    loose_ends            boolean,
    limited               boolean,
    tags                  jsonb,
    ord                   bigint,
    now_ms                bigint,
    handle_kind           text,
    attempt_type          text
);

-- A place in a list that is ordered by time. Internal.
create type ff_time_cursor as (
    at_ms bigint,
    id    uuid
);

-- What a submission asks for, checked and with its policy taken apart. Internal.
create type ff_submission as (
    lane_id               text,
    namespace             text,
    execution_kind        text,
    creator               text,
    payload_encoding      text,
    policy                jsonb,
    tags                  jsonb,
    required_capabilities text[],
    caps_key              text,
    priority              int,
    delay_until_ms        bigint,
    deadline_at_ms        bigint,
    attempt_timeout_ms    bigint,
    retention_ms          bigint,
    dedup_window_ms       bigint,
    quota_policy_id       text,
    budget_ids            text[]
);

-- What every claim function returns. Internal: public signatures spell the columns out.
create type ff_claim_row as (
    handle                text,
    handle_kind           text,
    execution_id          text,
    namespace             text,
    lane_id               text,
    flow_id               uuid,
    execution_kind        text,
    payload               bytea,
    payload_encoding      text,
    tags                  jsonb,
    priority              int,
    attempt_index         int,
    attempt_id            uuid,
    attempt_type          text,
    lease_id              uuid,
    lease_epoch           bigint,
    lease_expires_at_ms   bigint,
    attempt_timeout_at_ms bigint,
    deadline_at_ms        bigint
);

-- What a reclaim answers. Internal.
create type ff_reclaim_row as (
    outcome       text,
    reclaim_count int,
    claim         ff_claim_row
);

-- Some columns spare a claim or an end a look elsewhere: attempt_timeout_ms is the policy's, reserved_until_ms the expiry
-- of the execution's grant, tagged whether it has tags, open_waitpoints and stream_open what an ending attempt has to close,
-- limited whether admission has to be asked: it has a quota policy or budgets, or a slot was reserved for it.
-- spends whether the ledger may hold something that a budget takes back when it has ended (ff_sweep_terminal_spend).
-- blocked_budget_id is the budget that an execution which is blocked_by_budget waits for, and says nothing in other states.
-- unadmitted_lease_id the lease that nobody was asked for: an operator's, or one that came under a quota policy later.
-- Columns that are never NULL first, of fixed width before texts: what stands behind a NULL is found by walking there.
-- The row is updated on every transition and its width is WAL. public_state and the CHECK of the state vector are added by
-- db/functions/39_rules.sql, because they call functions: PostgreSQL parses inline expressions anew for each statement,
-- which would cost more than the rest of the write.
create table ff_exec_core (
    execution_id          uuid     not null primary key,
    created_at_ms         bigint   not null,
    last_transition_at_ms bigint   not null,
    last_mutation_at_ms   bigint   not null,
    last_event_ord        bigint   not null default 0,
    lease_epoch           bigint   not null default 0,
    priority              int      not null,
    total_attempt_count   int      not null default 0,
    retry_count           int      not null default 0,
    lease_reclaim_count   int      not null default 0,
    replay_count          int      not null default 0,
    open_waitpoints       int      not null default 0,
    partition_key         smallint not null,
    stream_open           boolean  not null default false,
    tagged                boolean  not null default false,
    limited               boolean  not null default false,
    spends                boolean  not null default false,
    flow_stopped          boolean  not null default false,
    lifecycle_phase       text     not null,
    ownership_state       text     not null,
    eligibility_state     text     not null,
    blocking_reason       text     not null,
    terminal_outcome      text collate "C" not null,
    attempt_state         text     not null,
    lane_id               text collate "C" not null,
    caps_key              text collate "C" not null,
    namespace             text collate "C" not null,
    flow_id               uuid,
    current_attempt_id    uuid,
    lease_id              uuid,
    current_suspension_id uuid,
    current_waitpoint_id  uuid,
    retention_ms          bigint,
    lease_ttl_ms          bigint,
    lease_acquired_at_ms  bigint,
    lease_renewed_at_ms   bigint,
    lease_expires_at_ms   bigint,
    lease_check_at_ms     bigint,
    delay_until_ms        bigint,
    not_before_ms         bigint,
    deadline_at_ms        bigint,
    attempt_timeout_at_ms bigint,
    attempt_timeout_ms    bigint,
    attempt_remaining_ms  bigint,
    reserved_until_ms     bigint,
    started_at_ms         bigint,
    terminal_at_ms        bigint,
    current_attempt_index int,
    worker_id             text,
    worker_instance_id    text,
    blocking_detail       text,
    lease_revoke_reason   text,
    failure_reason        text,
    failure_category      text,
    cancellation_reason   text,
    cancelled_by          text,
    quota_policy_id       text collate "C",
    blocked_budget_id     text collate "C",
    budget_ids            text[],
    unadmitted_lease_id   uuid
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);
comment on table ff_exec_core is
    'The hot row of an execution: state vector, attempt, lease, timers. One operation is one update of it. Read it through ff_describe_execution.';

-- A plain execution sits in the primary key and in one more of these at any time. They are few because each index costs
-- every write of the table, whether or not the row is in it: what belongs together shares one.
-- A claim wants one entry, but an index scan checks all of a page: the pages of the ready index are kept thin.
-- flow_stopped: members of a flow that is still being built are ready, but may stand in front of a lane by the thousand
-- for as long as it takes; outside the index they cost a claim nothing.
-- limited: work under a policy that is full never stands in front of work that needs no admission.
create index ff_exec_core_ready on ff_exec_core (lane_id, limited, caps_key, priority desc, created_at_ms, execution_id)
    with (fillfactor = 40) where blocking_reason = 'waiting_for_worker' and not flow_stopped;
-- Work that needs admission, by policy: a claim that meets a locked policy reads what waits for the others.
create index ff_exec_core_policy on ff_exec_core (
    lane_id, caps_key, (coalesce(quota_policy_id, '')), priority desc, created_at_ms, execution_id)
    where limited and blocking_reason = 'waiting_for_worker' and not flow_stopped;
-- What time will bring back on a lane: ended delays and lapsed leases. lease_check_at_ms, not the expiry, so that a
-- renewal changes no indexed column and stays a HOT update. What is parked has neither: it stands behind them, where
-- one probe tells whether a lane has any.
create index ff_exec_core_due on ff_exec_core (lane_id, (coalesce(lease_check_at_ms, delay_until_ms)))
    where ownership_state = 'leased'
       or eligibility_state in ('not_eligible_until_time', 'blocked_by_quota', 'blocked_by_budget');
-- Deadlines and attempt timeouts, whichever comes first.
create index ff_exec_core_timer on ff_exec_core ((least(deadline_at_ms, attempt_timeout_at_ms)))
    where (deadline_at_ms is not null or attempt_timeout_at_ms is not null) and lifecycle_phase <> 'terminal';
-- By outcome, because the default retention depends on it: what is kept longer never stands before what is due.
create index ff_exec_core_retention on ff_exec_core (retention_ms, terminal_outcome, terminal_at_ms)
    where lifecycle_phase = 'terminal' and flow_id is null;
-- Who runs under a quota policy, and who is parked under a policy or budget, in the order in which they are let go:
-- those that wait for a slot or a budget before those that wait for a time. And who has ended with something to give
-- back to a budget, and who is held by an operator.
create index ff_exec_core_limits on ff_exec_core (
    eligibility_state, (case eligibility_state when 'blocked_by_budget' then blocked_budget_id else quota_policy_id end),
    ((not_before_ms is not null)::int), priority desc, created_at_ms, execution_id)
    where limited and (ownership_state = 'leased' or eligibility_state in ('blocked_by_quota', 'blocked_by_budget'))
       or spends and eligibility_state = 'not_applicable' and lifecycle_phase = 'terminal'
       or eligibility_state = 'blocked_by_operator';
create index ff_exec_core_budgets on ff_exec_core using gin (budget_ids) with (fastupdate = off)
    where budget_ids is not null and lifecycle_phase <> 'terminal';
create index ff_exec_core_members on ff_exec_core (flow_id, execution_id)
    where flow_id is not null;

-- created_at is created_at_ms as people see it: lists and ff_v_execution page by it. A column, because an expression in an
-- index costs each submission more than the rest of the entry.
create table ff_exec_input (
    execution_id          uuid   not null primary key,
    created_at_ms         bigint not null,
    created_at            timestamptz not null,
    namespace             text collate "C" not null,
    execution_kind        text   not null,
    creator               text   not null,
    payload               bytea,
    payload_encoding      text,
    policy                jsonb  not null,
    tags                  jsonb  not null,
    required_capabilities text[] not null,
    request_hash          bytea  not null
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_exec_input is
    'The cold part of an execution, written at create: payload, normalised policy, tags. Only the tags ever change.';
create index ff_exec_input_created on ff_exec_input (created_at, execution_id);
-- Most executions carry no tags; searching by tag says tags <> '{}' too, and they stay out of the index.
create index ff_exec_input_tags on ff_exec_input using gin (tags) where tags <> '{}';

create table ff_attempt (
    execution_id           uuid   not null,
    attempt_index          int    not null,
    previous_attempt_index int,
    attempt_id             uuid   not null,
    lease_id               uuid   not null,
    lease_epoch            bigint not null,
    started_at_ms          bigint not null,
    resumed_at_ms          bigint,
    suspended_at_ms        bigint,
    ended_at_ms            bigint,
    progress_updated_at_ms bigint,
    release_lease_id       uuid,
    release_lease_epoch    bigint,
    release_at_ms          bigint,
    progress_pct           int,
    attempt_type           text   not null,
    state                  text   not null,
    worker_id              text   not null,
    worker_instance_id     text   not null,
    outcome                text,
    failure_reason         text,
    failure_category       text,
    classification         text,
    result                 bytea,
    result_encoding        text,
    progress_message       text,
    release_op             text,
    release_detail         jsonb,
    primary key (execution_id, attempt_index)
) with (
    -- Every attempt is written once more when it ends, and grows; those of a batch all at once.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
-- Which words its columns may hold is checked by ff_check_invariants: see the note on ff_exec_core.
comment on table ff_attempt is
    'One row per attempt of an execution: who ran it under which lease, how it ended, its result and progress.';

create table ff_claim_grant (
    execution_id       uuid   not null primary key,
    grant_id           uuid   not null unique,
    issued_at_ms       bigint not null,
    expires_at_ms      bigint not null,
    kind               text collate "C" not null check (kind in ('claim', 'resume', 'reclaim')),
    worker_id          text   not null,
    worker_instance_id text   not null,
    lane_id            text collate "C" not null,
    capabilities       text[] not null,
    admission_summary  text
);
comment on table ff_claim_grant is
    'Short reservations of one execution for one worker, made by a scheduler and redeemed by a claim.';
create index ff_claim_grant_expires on ff_claim_grant (expires_at_ms);

create table ff_idempotency (
    namespace       text collate "C" not null,
    idempotency_key text collate "C" not null,
    partition_key   smallint not null,
    execution_id    uuid     not null,
    expires_at_ms   bigint   not null,
    request_hash    bytea    not null,
    primary key (namespace, idempotency_key)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
comment on table ff_idempotency is
    'Idempotency keys of submitted executions, each with the window in which a repeated request answers duplicate.';
create index ff_idempotency_expires on ff_idempotency (expires_at_ms);
-- Whether the id of a deleted execution is free (ff__id_kept).
create index ff_idempotency_execution on ff_idempotency (execution_id);

create table ff_lane_registry (
    lane_id             text collate "C" not null primary key,
    state               text collate "C" not null check (state in ('active', 'paused', 'draining', 'disabled')),
    state_reason        text,
    state_changed_at_ms bigint  not null,
    registered_at_ms    bigint  not null,
    registered_by       text    not null,
    wake_armed          boolean not null default true,
    marked              boolean not null default false,
    limited             boolean not null default false,
    last_event_ord      bigint  not null default 0
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_lane_registry is
    'Lanes and their state: active takes and hands out work, paused only takes it, draining only hands it out, disabled neither.';

create table ff_worker_registry (
    namespace          text collate "C" not null,
    worker_instance_id text collate "C" not null,
    worker_id          text   not null,
    lanes              text[] not null,
    capabilities       text[] not null,
    last_heartbeat_ms  bigint not null,
    liveness_ttl_ms    bigint not null,
    registered_at_ms   bigint not null,
    last_event_ord     bigint not null default 0,
    primary key (namespace, worker_instance_id)
) with (fillfactor = 70, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1);
comment on table ff_worker_registry is
    'Workers that said they are here. Informative: claiming does not require it, leases do not depend on it.';

-- Where a claim may start to look. While some transaction holds back the removal of dead rows, the heads of the ready and
-- due indexes fill with entries of rows that are ready or due no more, and each claim would walk over all of them. A mark
-- is a hint, made only when such a walk was so long that no busy lane explains it: nothing before it was ready when it was made, and what becomes ready
-- behind it moves it back. Whoever was in the middle of a transaction meanwhile may be passed over; so claims look behind
-- the marks again every second, or seldomer if that walk (walked, at looked_ms) has become long. Insert only, the newest
-- counts: an update chain would suffer from the same disease. priority -1 is the mark of the due index.
create table ff_scan_mark (
    lane_id    text collate "C" not null,
    caps_key   text collate "C" not null,
    priority   int    not null,
    mark_no    bigint not null generated always as identity,
    from_ms    bigint not null,
    from_id    uuid   not null default '00000000-0000-0000-0000-000000000000',
    looked_ms  bigint not null,
    walked     bigint not null,
    primary key (lane_id, caps_key, priority, mark_no)
) with (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_scan_mark is
    'Where claims start to look on lanes whose index heads are full of dead entries that cannot be removed yet. A hint; empty in normal times.';
