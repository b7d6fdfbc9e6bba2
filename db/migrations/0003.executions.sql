-- Executions: the hot row and its rarely read input, attempts, grants, idempotency keys, lanes, workers.

set local lock_timeout = '10s';

-- The state of an execution: one word for each row of the state table, in lifecycle order. States that start with ready
-- are in a queue; the suffix is what the next claim does: none = first attempt, retry, replay = a new attempt, resume =
-- continues the paused one. The words from completed on are terminal.
create type ff_state as enum (
    'ready', 'ready_retry', 'ready_replay', 'ready_resume',
    'delayed', 'delayed_replay', 'delayed_resume', 'backoff_retry', 'resume_delay_resume',
    'children', 'children_retry', 'children_replay', 'children_resume',
    'quota', 'quota_retry', 'quota_replay', 'quota_resume',
    'budget', 'budget_retry', 'budget_replay', 'budget_resume',
    'held', 'held_retry', 'held_replay', 'held_resume',
    'leased', 'lease_expired', 'lease_revoked',
    'suspended_signal', 'suspended_approval', 'suspended_callback', 'suspended_tool_result', 'suspended_budget',
    'suspended_operator', 'suspended_policy',
    'completed', 'failed', 'cancelled', 'expired', 'skipped'
);

-- The fields by which a worker proves that it holds the lease. Internal: not in any public signature.
create type ff_fence as (
    execution_id  uuid,
    wire_id       text,
    attempt_index int,
    lease_id      uuid,
    lease_epoch   bigint,
    attempt_id    uuid
);

-- A locked execution as operations pass it: the columns that they check, the words of its state, and the operation's
-- time and place in the event order. Lease and attempt id are NULL when the execution has none. open_resources: its
-- attempt has waitpoints or a stream. defer_ends: ends are only recorded (ff_flow_dispatch, ff_child_work), because the
-- operation has locked the flow and dispatches when it is done. Internal.
create type ff_exec as (
    execution_id          uuid,
    partition_key         smallint,
    flow_id               uuid,
    namespace             text,
    lane_id               text,
    queue_id              int,
    rank                  bigint,
    priority              int,
    state                 ff_state,
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
    granted               boolean,
    open_resources            boolean,
    limited               boolean,
    tags                  jsonb,
    ord                   bigint,
    now_ms                bigint,
    defer_ends            boolean
);

-- How an attempt ends or pauses (outcome NULL), and the event of its lease (lease_event NULL: none). op: the operation
-- whose repetition by the lease holder returns the same result; NULL keeps the record of an earlier pause. Internal.
create type ff_ending as (
    op               text,
    outcome          text,
    failure_reason   text,
    failure_category text,
    classification   text,
    detail           jsonb,
    lease_event      text,
    lease_reason     text
);

-- A position in a list that is ordered by time. Internal.
create type ff_time_cursor as (
    at_ms bigint,
    id    uuid
);

-- A checked submission, with its policy parsed. Internal.
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
    budget_ids            text[],
    limited               boolean,
    state                 ff_state,
    queue_id              int
);

-- The result of every claim function. Internal: public signatures list the columns.
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

-- The result of a reclaim. Internal.
create type ff_reclaim_row as (
    outcome       text,
    reclaim_count int,
    claim         ff_claim_row
);

-- The meaning of each state. place: where it waits, without what the next claim does.
create table ff_state_word (
    state             ff_state not null primary key,
    place             text collate "C" not null,
    lifecycle_phase   text collate "C" not null,
    ownership_state   text collate "C" not null,
    eligibility_state text collate "C" not null,
    blocking_reason   text collate "C" not null,
    terminal_outcome  text collate "C" not null,
    attempt_state     text collate "C" not null,
    public_state      text collate "C" not null,
    unique (place, attempt_state)
);
comment on table ff_state_word is
    'The six dimensions and the public state of each state of an execution. Never changes.';

insert into ff_state_word
select v.state::ff_state, v.place, v.phase, v.ownership, v.eligibility, v.reason, v.outcome,
       coalesce(v.attempt, case when v.state like '%\_retry' then 'pending_retry_attempt'
                                when v.state like '%\_replay' then 'pending_replay_attempt'
                                when v.state like '%\_resume' then 'attempt_interrupted'
                                else 'pending_first_attempt' end),
       case when v.state = 'ready_resume' then 'resumable' else v.public_state end
  from (select x.state, x.place, 'runnable' as phase, 'unowned' as ownership, x.eligibility, x.reason,
               'none' as outcome, null as attempt, x.public_state
          from (select p.place || s.suffix as state, p.* from (values
                    ('ready', 'eligible_now', 'waiting_for_worker', 'waiting'),
                    ('delayed', 'not_eligible_until_time', 'waiting_for_delay', 'delayed'),
                    ('backoff', 'not_eligible_until_time', 'waiting_for_retry_backoff', 'delayed'),
                    ('resume_delay', 'not_eligible_until_time', 'waiting_for_resume_delay', 'delayed'),
                    ('children', 'blocked_by_dependencies', 'waiting_for_children', 'waiting_children'),
                    ('quota', 'blocked_by_quota', 'waiting_for_quota', 'rate_limited'),
                    ('budget', 'blocked_by_budget', 'waiting_for_budget', 'rate_limited'),
                    ('held', 'blocked_by_operator', 'paused_by_operator', 'waiting')
                ) p(place, eligibility, reason, public_state)
                cross join (values (''), ('_retry'), ('_replay'), ('_resume')) s(suffix)) x
         where x.state = any (enum_range(null::ff_state)::text[])
        union all
        select x.state, x.state, 'active', x.ownership, 'not_applicable', x.reason, 'none', x.attempt, 'active'
          from (values ('leased', 'leased', 'none', 'running_attempt'),
                       ('lease_expired', 'lease_expired_reclaimable', 'waiting_for_worker', 'attempt_interrupted'),
                       ('lease_revoked', 'lease_revoked', 'waiting_for_worker', 'attempt_interrupted')
               ) x(state, ownership, reason, attempt)
        union all
        select 'suspended_' || x.suffix, 'suspended_' || x.suffix, 'suspended', 'unowned', 'not_applicable', x.reason,
               'none', 'attempt_interrupted', 'suspended'
          from (values ('signal', 'waiting_for_signal'), ('approval', 'waiting_for_approval'),
                       ('callback', 'waiting_for_callback'), ('tool_result', 'waiting_for_tool_result'),
                       ('budget', 'waiting_for_budget'), ('operator', 'paused_by_operator'),
                       ('policy', 'paused_by_policy')) x(suffix, reason)
        union all
        select x.state, x.state, 'terminal', 'unowned', 'not_applicable', 'none', x.outcome, 'attempt_terminal', x.state
          from (values ('completed', 'success'), ('failed', 'failed'), ('cancelled', 'cancelled'),
                       ('expired', 'expired'), ('skipped', 'skipped')) x(state, outcome)
       ) v;

-- A queue: executions of one lane, namespace and capability set, separate for those that need admission. Rows are few
-- and never deleted. start_rank: where claims begin to read; settled_rank, settled_xid: how it was computed
-- (ff__move_start).
create table ff_queue (
    queue_id              int     not null generated always as identity primary key,
    lane_id               text collate "C" not null,
    namespace             text collate "C" not null,
    limited               boolean not null,
    caps_key              text collate "C" not null,
    required_capabilities text[]  not null,
    start_rank            bigint  not null default 0,
    settled_rank          bigint  not null default 0,
    settled_xid           xid8    not null default '3',
    unique (lane_id, limited, namespace, caps_key)
);
comment on table ff_queue is
    'The queues of a lane: one per namespace and capability set, and one more for work that needs admission. '
    'ff_execution.queue_id names one.';

-- The order of executions of equal priority.
create sequence ff_turn_seq as bigint cache 1;

-- One row per execution: its definition, its state, its last attempt and lease. Earlier attempts are in
-- ff_attempt_past. The meaning of a column depends on the state: lease, worker and suspension keep their values after
-- they end; the view ff_exec_core shows them only while they are current.
-- ready_in is queue_id while a claim may take the row, otherwise NULL; it is negative for all but fresh work of
-- priority 0 without limits (ff__ready_queue). rank is the position there: priority, then turn.
-- due_at_ms is when it becomes claimable: the end of a delay, the next check of a lease, the end of a grant; the end
-- of time while it is parked, so that one probe shows whether a queue has any parked work.
-- open_waitpoints and stream_open: what an ending attempt has to close. granted: there is a row in ff_claim_grant.
-- limited: admission has to be checked: it has a quota policy or budgets, or a slot was reserved for it. spends: the
-- ledger may hold spend that is released when it has ended (ff_sweep_terminal_spend). blocked_budget_id: the budget
-- that it is parked for. unadmitted_lease_id: a lease granted without an admission check.
-- joined: it was created outside of its flow. policy and tags are NULL where they are the default;
-- required_capabilities are those of its queue.
-- Columns that are never NULL come first, fixed width before text, so that they are read without walking the row. No
-- CHECK and no generated column: PostgreSQL parses these for every statement.
create table ff_execution (
    execution_id           uuid     not null primary key,
    created_at_ms          bigint   not null,
    rank                   bigint   not null,
    queue_id               int      not null,
    priority               int      not null,
    partition_key          smallint not null,
    limited                boolean  not null default false,
    joined                 boolean  not null default false,
    last_transition_at_ms  bigint   not null,
    last_mutation_at_ms    bigint   not null,
    last_event_ord         bigint   not null default 0,
    lease_epoch            bigint   not null default 0,
    state                  ff_state not null,
    total_attempt_count    int      not null default 0,
    retry_count            int      not null default 0,
    lease_reclaim_count    int      not null default 0,
    replay_count           int      not null default 0,
    open_waitpoints        int      not null default 0,
    stream_open            boolean  not null default false,
    granted                boolean  not null default false,
    spends                 boolean  not null default false,
    lane_id                text collate "C" not null,
    namespace              text collate "C" not null,
    execution_kind         text     not null,
    creator                text     not null,
    payload                bytea,
    payload_encoding       text,
    flow_id                uuid,
    attempt_timeout_ms     bigint,
    deadline_at_ms         bigint,
    retention_ms           bigint,
    policy                 jsonb,
    tags                   jsonb,
    quota_policy_id        text collate "C",
    budget_ids             text[],
    ready_in               int,
    due_at_ms              bigint,
    lease_id               uuid,
    lease_ttl_ms           bigint,
    lease_acquired_at_ms   bigint,
    lease_expires_at_ms    bigint,
    started_at_ms          bigint,
    attempt_id             uuid,
    attempt_index          int,
    attempt_type           text,
    attempt_started_at_ms  bigint,
    worker_id              text,
    worker_instance_id     text,
    terminal_at_ms         bigint,
    attempt_ended_at_ms    bigint,
    attempt_outcome        text,
    release_op             text,
    release_at_ms          bigint,
    lease_renewed_at_ms    bigint,
    result                 bytea,
    result_encoding        text,
    delay_until_ms         bigint,
    attempt_timeout_at_ms  bigint,
    attempt_remaining_ms   bigint,
    failure_reason         text,
    failure_category       text,
    cancellation_reason    text,
    cancelled_by           text,
    blocking_detail        text,
    lease_revoke_reason    text,
    current_suspension_id  uuid,
    current_waitpoint_id   uuid,
    attempt_resumed_at_ms  bigint,
    attempt_suspended_at_ms bigint,
    attempt_failure_reason text,
    attempt_failure_category text,
    attempt_classification text,
    release_lease_id       uuid,
    release_lease_epoch    bigint,
    release_detail         jsonb,
    progress_pct           int,
    progress_message       text,
    progress_updated_at_ms bigint,
    not_before_ms          bigint,
    blocked_budget_id      text collate "C",
    unadmitted_lease_id    uuid
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);
comment on table ff_execution is
    'One row per execution: input, state, last attempt, lease, timers. One operation is one update of it. Read it '
    'through ff_describe_execution.';

-- An execution without flow, limits or tags is in the primary key and in one more of these at any time. They are few,
-- with short conditions, because each index costs time in every write, even of rows that are not in it.
create index ff_execution_ready on ff_execution (ready_in, rank) where ready_in is not null;
create index ff_execution_due on ff_execution (queue_id, due_at_ms) where due_at_ms is not null;
-- Deadlines and attempt timeouts, the earlier of the two.
create index ff_execution_timer on ff_execution ((least(deadline_at_ms, attempt_timeout_at_ms)))
    where (deadline_at_ms is not null or attempt_timeout_at_ms is not null) and terminal_at_ms is null;
-- By state, because the default retention depends on it: rows kept longer never precede due rows.
create index ff_execution_retention on ff_execution (retention_ms, state, terminal_at_ms)
    where terminal_at_ms is not null and flow_id is null;
-- Executions under limits, by policy or budget, in the order of unparking: those that wait for a slot or a budget
-- before those that wait for a time. Also ended executions with spend to release, and executions held by an operator.
create index ff_execution_limits on ff_execution (
    state, (coalesce(blocked_budget_id, quota_policy_id, '')), ((not_before_ms is not null)::int), rank)
    where limited and terminal_at_ms is null or spends or state between 'held' and 'held_resume';
create index ff_execution_budgets on ff_execution using gin (budget_ids) with (fastupdate = off)
    where budget_ids is not null and terminal_at_ms is null;
create index ff_execution_members on ff_execution (flow_id, execution_id) where flow_id is not null;
-- Most executions have no tags and are not in this index; a search by tag implies its condition.
create index ff_execution_tags on ff_execution using gin (tags) where tags is not null;

-- Attempts followed by a later one; insert only.
create table ff_attempt_past (
    execution_id           uuid   not null,
    attempt_index          int    not null,
    attempt_id             uuid   not null,
    lease_id               uuid   not null,
    lease_epoch            bigint not null,
    started_at_ms          bigint not null,
    resumed_at_ms          bigint,
    suspended_at_ms        bigint,
    ended_at_ms            bigint not null,
    progress_updated_at_ms bigint,
    release_lease_id       uuid,
    release_lease_epoch    bigint,
    release_at_ms          bigint,
    progress_pct           int,
    attempt_type           text   not null,
    worker_id              text   not null,
    worker_instance_id     text   not null,
    outcome                text   not null,
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
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_attempt_past is
    'Attempts of an execution that a later attempt followed. The last attempt is in the row of the execution.';

-- The views used by the documentation and the invariants.
create view ff_exec_core as
select c.execution_id, c.partition_key, c.namespace, c.lane_id, q.caps_key, c.priority, c.created_at_ms, c.retention_ms,
       c.flow_id, c.state, w.lifecycle_phase, w.ownership_state, w.eligibility_state, w.blocking_reason,
       w.terminal_outcome,
       case when w.lifecycle_phase = 'terminal' and c.total_attempt_count = 0 then 'none' else w.attempt_state end
           as attempt_state,
       w.public_state, c.blocking_detail, c.attempt_index as current_attempt_index,
       case when w.attempt_state in ('running_attempt', 'attempt_interrupted') then c.attempt_id end
           as current_attempt_id,
       c.total_attempt_count, c.retry_count, c.lease_reclaim_count, c.replay_count, c.lease_epoch,
       case when w.lifecycle_phase = 'active' then c.lease_id end as lease_id,
       case when w.lifecycle_phase = 'active' then c.lease_ttl_ms end as lease_ttl_ms,
       c.lease_acquired_at_ms, c.lease_renewed_at_ms,
       case when w.lifecycle_phase = 'active' then c.lease_expires_at_ms end as lease_expires_at_ms,
       case when c.state = 'leased' and not c.granted then c.due_at_ms
            when w.lifecycle_phase = 'active' then c.lease_expires_at_ms end as lease_check_at_ms,
       case when w.lifecycle_phase = 'active' then c.worker_id end as worker_id,
       case when w.lifecycle_phase = 'active' then c.worker_instance_id end as worker_instance_id,
       case when w.lifecycle_phase = 'active' then c.lease_revoke_reason end as lease_revoke_reason,
       c.delay_until_ms, c.not_before_ms, c.deadline_at_ms, c.attempt_timeout_at_ms, c.attempt_remaining_ms,
       c.current_suspension_id, c.current_waitpoint_id, c.quota_policy_id, c.budget_ids, c.started_at_ms,
       c.terminal_at_ms, c.failure_reason, c.failure_category, c.cancellation_reason, c.cancelled_by,
       c.last_transition_at_ms, c.last_mutation_at_ms, c.last_event_ord, c.limited, c.spends, c.blocked_budget_id,
       c.unadmitted_lease_id, c.open_waitpoints, c.stream_open, c.granted, c.attempt_timeout_ms, c.queue_id,
       c.ready_in, c.rank, c.due_at_ms
  from ff_execution c
  join ff_state_word w on w.state = c.state
  join ff_queue q on q.queue_id = c.queue_id;
comment on view ff_exec_core is
    'Executions with the six dimensions of their state and their current lease and attempt.';

create view ff_exec_input as
select c.execution_id, c.created_at_ms, c.namespace, c.execution_kind, c.creator, c.payload, c.payload_encoding,
       coalesce(c.policy, jsonb '{"max_reclaim_count": 100, "max_replay_count": 10, "dedup_window_ms": 604800000, '
                                '"max_signals_per_execution": 10000}') as policy,
       coalesce(c.tags, jsonb '{}') as tags, q.required_capabilities,
       sha256(
           int4send(octet_length(c.lane_id)) || convert_to(c.lane_id, 'UTF8')
           || int4send(octet_length(c.execution_kind)) || convert_to(c.execution_kind, 'UTF8')
           || int4send(coalesce(octet_length(c.payload), -1)) || coalesce(c.payload, '')
           || int4send(coalesce(octet_length(c.payload_encoding), -1))
           || coalesce(convert_to(c.payload_encoding, 'UTF8'), '')
           || coalesce(case when not c.joined then uuid_send(c.flow_id) end, '')) as request_hash
  from ff_execution c
  join ff_queue q on q.queue_id = c.queue_id;
comment on view ff_exec_input is
    'The input of an execution: payload, policy, tags.';

create view ff_attempt as
select p.execution_id, p.attempt_index, nullif(p.attempt_index - 1, -1) as previous_attempt_index, p.attempt_id,
       p.attempt_type,
       case p.outcome when 'success' then 'ended_success' when 'failure' then 'ended_failure'
                      when 'expired' then 'ended_failure' when 'interrupted_reclaimed' then 'interrupted_reclaimed'
                      else 'ended_cancelled' end as state,
       p.worker_id, p.worker_instance_id, p.lease_id, p.lease_epoch, p.started_at_ms, p.resumed_at_ms,
       p.suspended_at_ms, p.ended_at_ms, p.outcome, p.failure_reason, p.failure_category, p.classification, p.result,
       p.result_encoding, p.progress_pct, p.progress_message, p.progress_updated_at_ms, p.release_op,
       p.release_lease_id, p.release_lease_epoch, p.release_at_ms, p.release_detail
  from ff_attempt_past p
union all
select c.execution_id, c.attempt_index, nullif(c.attempt_index - 1, -1), c.attempt_id, c.attempt_type,
       case c.attempt_outcome when 'success' then 'ended_success' when 'failure' then 'ended_failure'
                              when 'expired' then 'ended_failure'
                              when 'interrupted_reclaimed' then 'interrupted_reclaimed'
                              when 'cancelled' then 'ended_cancelled' when 'skipped' then 'ended_cancelled'
                              else case when c.state in ('leased', 'lease_expired', 'lease_revoked') then 'started'
                                        else 'suspended' end end,
       c.worker_id, c.worker_instance_id, c.lease_id, c.lease_epoch, c.attempt_started_at_ms, c.attempt_resumed_at_ms,
       c.attempt_suspended_at_ms, c.attempt_ended_at_ms, c.attempt_outcome, c.attempt_failure_reason,
       c.attempt_failure_category, c.attempt_classification, c.result, c.result_encoding, c.progress_pct,
       c.progress_message, c.progress_updated_at_ms, c.release_op,
       case when c.release_op is not null then coalesce(c.release_lease_id, c.lease_id) end,
       case when c.release_op is not null then coalesce(c.release_lease_epoch, c.lease_epoch) end,
       c.release_at_ms, c.release_detail
  from ff_execution c where c.attempt_index is not null;
comment on view ff_attempt is
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
    'Idempotency keys of submitted executions, each with the window in which a repeated request returns duplicate.';
create index ff_idempotency_expires on ff_idempotency (expires_at_ms);
-- Whether the id of a deleted execution is free (ff__is_id_in_use).
create index ff_idempotency_execution on ff_idempotency (execution_id);

create table ff_lane_registry (
    lane_id             text collate "C" not null primary key,
    state               text collate "C" not null check (state in ('active', 'paused', 'draining', 'disabled')),
    state_reason        text,
    state_changed_at_ms bigint  not null,
    registered_at_ms    bigint  not null,
    registered_by       text    not null,
    wake_armed          boolean not null default true,
    last_event_ord      bigint  not null default 0
) with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
comment on table ff_lane_registry is
    'Lanes and their state: active accepts submissions and claims, paused only submissions, draining only claims, '
    'disabled neither.';

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
    'Registered workers. Informative: claims do not require registration, leases do not depend on it.';
