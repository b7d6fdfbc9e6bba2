-- Executions: the hot row and its rarely read input, attempts, grants, idempotency keys, lanes, workers.

set local lock_timeout = '10s';

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
comment on type ff_state is
    'The state of an execution: one word for each row of the state table, in lifecycle order. States that start '
    'with ready are in a queue; the suffix is what the next claim does: none = first attempt, retry, replay = a new '
    'attempt, resume = continues the paused one. The words from completed on are terminal.';

create type ff_fence as (
    execution_id  uuid,
    wire_id       text,
    attempt_index int,
    lease_id      uuid,
    lease_epoch   bigint,
    attempt_id    uuid
);
comment on type ff_fence is
    'The fields by which a worker proves that it holds the lease. Internal: not in any public signature.';

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
    open_resources        boolean,
    limited               boolean,
    tags                  jsonb,
    ord                   bigint,
    now_ms                bigint,
    defer_ends            boolean
);
comment on type ff_exec is
    'A locked execution as operations pass it: the columns that they check, the words of its state, and the '
    'operation''s time and place in the event order. Lease and attempt id are NULL when the execution has none. '
    'open_resources: its attempt has waitpoints or a stream. defer_ends: ends are only recorded (ff_flow_dispatch, '
    'ff_child_work), because the operation has locked the flow and dispatches when it is done. Internal.';

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
comment on type ff_ending is
    'How an attempt ends or pauses (outcome NULL), and the event of its lease (lease_event NULL: none). op: the '
    'operation whose repetition by the lease holder returns the same result; NULL keeps the record of an earlier '
    'pause. Internal.';

create type ff_time_cursor as (
    at_ms bigint,
    id    uuid
);
comment on type ff_time_cursor is 'A position in a list that is ordered by time. Internal.';

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
comment on type ff_submission is 'A checked submission, with its policy parsed. Internal.';

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
comment on type ff_claim_row is 'The result of every claim function. Internal: public signatures list the columns.';

create type ff_reclaim_row as (
    outcome       text,
    reclaim_count int,
    claim         ff_claim_row
);
comment on type ff_reclaim_row is 'The result of a reclaim. Internal.';

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
comment on column ff_state_word.state is 'The value of ff_execution.state.';
comment on column ff_state_word.place is
    'Where an execution in this state waits or is, without what its next claim does: ready, for ready and '
    'ready_retry.';
comment on column ff_state_word.lifecycle_phase is 'runnable, active, suspended or terminal.';
comment on column ff_state_word.ownership_state is 'unowned, leased, lease_expired_reclaimable or lease_revoked.';
comment on column ff_state_word.eligibility_state is
    'Whether a claim may take it, or what prevents that; not_applicable unless it is runnable.';
comment on column ff_state_word.blocking_reason is 'What it waits for; none while it runs and after its end.';
comment on column ff_state_word.terminal_outcome is 'How it ended; none before.';
comment on column ff_state_word.attempt_state is 'What the last attempt is doing, or what the next claim starts.';
comment on column ff_state_word.public_state is 'The state in one word, as functions return it.';

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

-- Rows are few and never deleted.
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
    start_due_ms          bigint  not null default 0,
    settled_due_ms        bigint  not null default 0,
    unique (lane_id, limited, namespace, caps_key)
);
comment on table ff_queue is
    'The queues of a lane: one per namespace and capability set, and one more for work that needs admission. '
    'ff_execution.queue_id names one.';
comment on column ff_queue.queue_id is 'The number of the queue, which ff_execution.queue_id and ready_in refer to.';
comment on column ff_queue.lane_id is 'The lane of its executions.';
comment on column ff_queue.namespace is 'The namespace of its executions.';
comment on column ff_queue.limited is 'Whether it is for executions that need admission by a quota policy or a budget.';
comment on column ff_queue.caps_key is
    'required_capabilities as one text: sorted, separated by commas; above 256 bytes a space and a sha256 in hex.';
comment on column ff_queue.required_capabilities is
    'The capabilities that a worker must have to claim from it, sorted; empty: none.';
comment on column ff_queue.start_rank is
    'Claims read the queue from this ff_execution.rank on; all before it were claimed. Moved by ff__move_start.';
comment on column ff_queue.settled_rank is
    'The candidate for the next start_rank: all executions up to this rank are visible once settled_xid has '
    'ended.';
comment on column ff_queue.settled_xid is
    'The transaction that computed settled_rank and settled_due_ms; 3 before the first time.';
comment on column ff_queue.start_due_ms is
    'Claims read due executions of the queue from this ff_execution.due_at_ms on (Unix time in ms). Moved by '
    'ff__move_start.';
comment on column ff_queue.settled_due_ms is
    'The time when settled_xid started (Unix time in ms): the candidate for the next start_due_ms.';

-- The order of executions of equal priority.
create sequence ff_turn_seq as bigint cache 1;

-- One row per execution: its definition, its state, its last attempt and lease. Earlier attempts are in
-- ff_attempt_past. The meaning of a column depends on the state: lease, worker and suspension keep their values after
-- they end; the view ff_exec_core shows them only while they are current.
-- Columns are in the order of how often they change: the definition, the lease, the state. The log of an update
-- contains the row from the first byte that changed to the last one. No CHECK and no generated column: PostgreSQL
-- parses these for every statement.
create table ff_execution (
    execution_id           uuid     not null primary key,
    created_at_ms          bigint   not null,
    rank                   bigint   not null,
    queue_id               int      not null,
    priority               int      not null,
    retry_count            int      not null default 0,
    lease_reclaim_count    int      not null default 0,
    replay_count           int      not null default 0,
    open_waitpoints        int      not null default 0,
    partition_key          smallint not null,
    limited                boolean  not null default false,
    joined                 boolean  not null default false,
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
    lease_epoch            bigint   not null default 0,
    total_attempt_count    int      not null default 0,
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
    last_transition_at_ms  bigint   not null,
    last_mutation_at_ms    bigint   not null,
    last_event_ord         bigint   not null default 0,
    state                  ff_state not null,
    ready_in               int,
    due_at_ms              bigint,
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

comment on column ff_execution.execution_id is
    'The uuid of the execution. {fp:partition_key}:uuid is the id that functions take and return. Ids made by the '
    'engine are UUIDv7, in the order of time.';
comment on column ff_execution.created_at_ms is 'When it was submitted (Unix time in ms).';
comment on column ff_execution.rank is
    'The position in its queue, smallest first: computed from priority and from a turn of ff_turn_seq (ff__rank).';
comment on column ff_execution.queue_id is 'The row of ff_queue with its lane, namespace and required capabilities.';
comment on column ff_execution.priority is '0 to 9000; higher is claimed first.';
comment on column ff_execution.partition_key is
    'The last byte of execution_id, 0 to 255; part of the id that functions take.';
comment on column ff_execution.limited is
    'Whether admission has to be checked: it has a quota policy or budgets, or a slot was reserved for it.';
comment on column ff_execution.joined is
    'Whether it was created outside of its flow, and added by ff_add_execution_to_flow.';
comment on column ff_execution.last_transition_at_ms is
    'When state was last written by a transition (Unix time in ms).';
comment on column ff_execution.last_mutation_at_ms is 'When the row was last changed (Unix time in ms).';
comment on column ff_execution.last_event_ord is
    'The ord of its last event in ff_event_log; its next event has this one or a greater one.';
comment on column ff_execution.lease_epoch is
    'The number of the last lease, counted from 1; 0 before the first. Never decreases.';
comment on column ff_execution.state is 'The state in one word; ff_state_word has its meaning.';
comment on column ff_execution.total_attempt_count is 'How many attempts were started.';
comment on column ff_execution.retry_count is
    'How many retries of a failure were scheduled since the submission or the last replay.';
comment on column ff_execution.lease_reclaim_count is
    'How often it was reclaimed from an expired or revoked lease since the submission or the last replay.';
comment on column ff_execution.replay_count is 'How often it was replayed after its end.';
comment on column ff_execution.open_waitpoints is
    'How many of its waitpoints are pending or active: what an ending attempt has to close.';
comment on column ff_execution.stream_open is
    'Whether its current attempt has an open stream, which an ending attempt has to close.';
comment on column ff_execution.granted is 'Whether ff_claim_grant has a row for it.';
comment on column ff_execution.spends is
    'Whether ff_budget_usage_by_exec may have spend of it that ff_sweep_terminal_spend releases after its end.';
comment on column ff_execution.lane_id is 'The lane, as in its queue.';
comment on column ff_execution.namespace is 'The namespace, as in its queue.';
comment on column ff_execution.execution_kind is 'The kind of work, as named by the submitter.';
comment on column ff_execution.creator is 'Who submitted it, as given by the submitter.';
comment on column ff_execution.payload is 'The input for the worker; NULL: none.';
comment on column ff_execution.payload_encoding is
    'The encoding of the payload, as named by the submitter; NULL: not given.';
comment on column ff_execution.flow_id is 'The flow that it is a member of; NULL: none.';
comment on column ff_execution.attempt_timeout_ms is
    'How long one attempt may run, in ms, without its pauses; from the policy; NULL: no limit.';
comment on column ff_execution.deadline_at_ms is
    'When it expires, in any state (Unix time in ms); NULL: never. A replay sets it again.';
comment on column ff_execution.retention_ms is
    'How long it is kept after its end, in ms; from the policy; NULL: as the settings retention_ms and '
    'retention_failed_ms say.';
comment on column ff_execution.policy is 'The policy with all defaults, fixed at submission; NULL: the default policy.';
comment on column ff_execution.tags is 'An object of texts by key; NULL: none.';
comment on column ff_execution.quota_policy_id is 'The quota policy that admits it; NULL: none.';
comment on column ff_execution.budget_ids is 'The budgets attached to it; NULL: none.';
comment on column ff_execution.ready_in is
    'Set while a claim may take it, otherwise NULL: queue_id for limited work and for new work of priority 0, the '
    'negative queue_id for other work (ff__ready_queue).';
comment on column ff_execution.due_at_ms is
    'When it becomes claimable, or its lease has to be checked (Unix time in ms): the end of a delay, the next '
    'check of a lease, the end of a grant; the end of the year 9999 while it is parked by a quota policy or a '
    'budget, so that one probe shows whether a queue has parked work. NULL: nothing is due.';
comment on column ff_execution.lease_id is
    'The last lease. The columns of lease and worker keep their values after the lease has ended, and are NULL '
    'before the first claim.';
comment on column ff_execution.lease_ttl_ms is
    'The length of the lease in ms, as claimed; a renewal without a length uses it.';
comment on column ff_execution.lease_acquired_at_ms is 'When the last lease was granted (Unix time in ms).';
comment on column ff_execution.lease_expires_at_ms is
    'When the last lease expires unless it is renewed (Unix time in ms): never after deadline_at_ms or '
    'attempt_timeout_at_ms.';
comment on column ff_execution.started_at_ms is 'When it was first claimed (Unix time in ms); NULL before.';
comment on column ff_execution.attempt_id is
    'The last attempt: the id of its first lease; NULL before the first claim.';
comment on column ff_execution.attempt_index is 'The number of the last attempt, from 0; NULL before the first claim.';
comment on column ff_execution.attempt_type is 'Why the last attempt was started: initial, retry, reclaim or replay.';
comment on column ff_execution.attempt_started_at_ms is 'When the last attempt was claimed first (Unix time in ms).';
comment on column ff_execution.worker_id is 'The worker of the last lease.';
comment on column ff_execution.worker_instance_id is 'The process of that worker.';
comment on column ff_execution.terminal_at_ms is 'When it ended (Unix time in ms); NULL before, and after a replay.';
comment on column ff_execution.attempt_ended_at_ms is
    'When the last attempt ended (Unix time in ms); NULL while it runs or is paused.';
comment on column ff_execution.attempt_outcome is
    'How the last attempt ended: success, failure, cancelled, expired, skipped or interrupted_reclaimed; NULL '
    'while it runs or is paused.';
comment on column ff_execution.release_op is
    'The operation that ended the last lease by its holder or over it: complete, fail, delay, suspend, override '
    'and so on. The holder''s repetition of the operation returns the recorded result. NULL: none yet.';
comment on column ff_execution.release_at_ms is 'When release_op happened (Unix time in ms).';
comment on column ff_execution.lease_renewed_at_ms is
    'When the last lease was last renewed (Unix time in ms); NULL: never.';
comment on column ff_execution.result is 'The result of the last attempt, as reported by the worker; NULL: none.';
comment on column ff_execution.result_encoding is 'The encoding of the result, as named by the worker.';
comment on column ff_execution.delay_until_ms is
    'The end of its delay, retry backoff or resume delay (Unix time in ms); NULL: it has none.';
comment on column ff_execution.attempt_timeout_at_ms is
    'When the running attempt times out (Unix time in ms); NULL: no attempt runs, or it has no timeout.';
comment on column ff_execution.attempt_remaining_ms is
    'How much longer the paused attempt may run, in ms; NULL unless an attempt with a timeout is paused.';
comment on column ff_execution.failure_reason is
    'Why it is retried, or ended failed, expired or skipped; NULL otherwise. The next claim resets it.';
comment on column ff_execution.failure_category is 'The category of failure_reason.';
comment on column ff_execution.cancellation_reason is 'Why it was cancelled, as given by the caller; NULL: it was not.';
comment on column ff_execution.cancelled_by is 'Who cancelled it, as given by the caller or the engine.';
comment on column ff_execution.blocking_detail is
    'More on what it waits for: the quota policy or budget that denied it, or the text of an operator or of a '
    'suspension.';
comment on column ff_execution.lease_revoke_reason is 'Why the last lease was revoked; NULL: it was not.';
comment on column ff_execution.current_suspension_id is 'The open suspension; NULL: none.';
comment on column ff_execution.current_waitpoint_id is 'The first waitpoint of the open suspension; NULL: none.';
comment on column ff_execution.attempt_resumed_at_ms is
    'When the last attempt was last claimed after a pause (Unix time in ms); NULL: never.';
comment on column ff_execution.attempt_suspended_at_ms is
    'When the last attempt was last paused (Unix time in ms); NULL: never.';
comment on column ff_execution.attempt_failure_reason is
    'Why the last attempt did not succeed; NULL: it succeeded or is open.';
comment on column ff_execution.attempt_failure_category is
    'The category of attempt_failure_reason, as named by the worker or the engine.';
comment on column ff_execution.attempt_classification is
    'How the retry policy classifies it: transient, permanent, infra_crash, timeout or cancelled.';
comment on column ff_execution.release_lease_id is
    'The lease that release_op ended, if a later lease followed; NULL: lease_id.';
comment on column ff_execution.release_lease_epoch is 'The number of release_lease_id; NULL: lease_epoch.';
comment on column ff_execution.release_detail is 'The result of release_op that its repetition returns.';
comment on column ff_execution.progress_pct is 'The progress in percent that the worker reported last; NULL: none.';
comment on column ff_execution.progress_message is 'The message of the last progress report.';
comment on column ff_execution.progress_updated_at_ms is 'When progress was last reported (Unix time in ms).';
comment on column ff_execution.not_before_ms is
    'The earliest next admission check of parked work (Unix time in ms); NULL: when a slot or a budget becomes '
    'free.';
comment on column ff_execution.blocked_budget_id is 'The budget that it is parked for; NULL: none.';
comment on column ff_execution.unadmitted_lease_id is
    'A lease that was granted without an admission check; NULL: none.';

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
comment on column ff_attempt_past.execution_id is 'The execution.';
comment on column ff_attempt_past.attempt_index is 'The number of the attempt, from 0.';
comment on column ff_attempt_past.attempt_id is 'The id of the attempt, which is that of its first lease.';
comment on column ff_attempt_past.lease_id is 'Its last lease.';
comment on column ff_attempt_past.lease_epoch is 'The number of its last lease.';
comment on column ff_attempt_past.started_at_ms is 'When it was claimed first (Unix time in ms).';
comment on column ff_attempt_past.resumed_at_ms is
    'When it was last claimed after a pause (Unix time in ms); NULL: never.';
comment on column ff_attempt_past.suspended_at_ms is 'When it was last paused (Unix time in ms); NULL: never.';
comment on column ff_attempt_past.ended_at_ms is
    'When it ended (Unix time in ms): for an interrupted attempt, when the next one was claimed.';
comment on column ff_attempt_past.progress_updated_at_ms is
    'When progress was last reported (Unix time in ms); NULL: never.';
comment on column ff_attempt_past.release_lease_id is 'The lease that release_op ended; NULL: none.';
comment on column ff_attempt_past.release_lease_epoch is 'The number of release_lease_id.';
comment on column ff_attempt_past.release_at_ms is 'When release_op happened (Unix time in ms).';
comment on column ff_attempt_past.progress_pct is 'The progress in percent that the worker reported last; NULL: none.';
comment on column ff_attempt_past.attempt_type is 'Why it was started: initial, retry, reclaim or replay.';
comment on column ff_attempt_past.worker_id is 'The worker of its last lease.';
comment on column ff_attempt_past.worker_instance_id is 'The process of that worker.';
comment on column ff_attempt_past.outcome is
    'How it ended: success, failure, cancelled, expired, skipped or interrupted_reclaimed.';
comment on column ff_attempt_past.failure_reason is 'Why it did not succeed; NULL: it succeeded.';
comment on column ff_attempt_past.failure_category is
    'The category of failure_reason, as named by the worker or the engine.';
comment on column ff_attempt_past.classification is
    'How the retry policy classified it: transient, permanent, infra_crash, timeout or cancelled.';
comment on column ff_attempt_past.result is 'Its result, as reported by the worker; NULL: none.';
comment on column ff_attempt_past.result_encoding is 'The encoding of the result, as named by the worker.';
comment on column ff_attempt_past.progress_message is 'The message of the last progress report.';
comment on column ff_attempt_past.release_op is
    'The operation that ended its last lease; reclaim if the next attempt took over.';
comment on column ff_attempt_past.release_detail is 'The result of release_op that its repetition returns.';

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
comment on column ff_exec_core.attempt_state is
    'The state of the last attempt, or what the next claim starts; none if it ended before the first.';
comment on column ff_exec_core.current_attempt_index is
    'The number of the last attempt, from 0; NULL before the first claim.';
comment on column ff_exec_core.current_attempt_id is 'The attempt that runs or is paused; NULL: none.';
comment on column ff_exec_core.lease_id is 'The lease, while active; otherwise NULL.';
comment on column ff_exec_core.lease_ttl_ms is 'The length of the lease in ms, as claimed; NULL unless active.';
comment on column ff_exec_core.lease_expires_at_ms is
    'When the lease expires unless it is renewed (Unix time in ms); NULL unless active.';
comment on column ff_exec_core.lease_check_at_ms is
    'When a claim checks next whether the lease has expired (Unix time in ms); NULL unless active.';
comment on column ff_exec_core.worker_id is 'The worker of the lease; NULL unless active.';
comment on column ff_exec_core.worker_instance_id is 'The process of that worker; NULL unless active.';
comment on column ff_exec_core.lease_revoke_reason is 'Why the lease was revoked; NULL unless active.';

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
comment on column ff_exec_input.policy is 'The policy with all defaults, fixed at submission.';
comment on column ff_exec_input.tags is 'An object of texts by key.';
comment on column ff_exec_input.request_hash is 'The sha256 of the request, as in ff_idempotency.';

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
comment on column ff_attempt.previous_attempt_index is 'The attempt that it follows; NULL: none.';
comment on column ff_attempt.state is
    'started, suspended, ended_success, ended_failure, ended_cancelled or interrupted_reclaimed.';
comment on column ff_attempt.ended_at_ms is 'When it ended (Unix time in ms); NULL while it runs or is paused.';
comment on column ff_attempt.outcome is
    'How it ended: success, failure, cancelled, expired, skipped or interrupted_reclaimed; NULL while it runs or '
    'is paused.';

-- The other columns of these views have the comments of the columns that they show.
do $comments$
declare
    v_comment text;
begin
    for v_comment in
        select distinct on (v.view, a.attname)
               format('comment on column %I.%I is %L', v.view, a.attname, col_description(s.attrelid, s.attnum))
          from (values ('ff_exec_core', '{ff_execution, ff_state_word, ff_queue}'),
                       ('ff_exec_input', '{ff_execution, ff_queue}'),
                       ('ff_attempt', '{ff_attempt_past}')) v(view, tables)
          join pg_attribute a on a.attrelid = v.view::regclass
         cross join lateral unnest(v.tables::text[]) with ordinality t(name, n)
          join pg_attribute s on s.attrelid = t.name::regclass and s.attname = a.attname
         where col_description(a.attrelid, a.attnum) is null
         order by v.view, a.attname, t.n
    loop
        execute v_comment;
    end loop;
end
$comments$;

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
comment on column ff_claim_grant.execution_id is 'The reserved execution.';
comment on column ff_claim_grant.grant_id is 'The id that the worker redeems.';
comment on column ff_claim_grant.issued_at_ms is 'When it was issued (Unix time in ms).';
comment on column ff_claim_grant.expires_at_ms is
    'When it ends unused (Unix time in ms); the execution is then claimable by others.';
comment on column ff_claim_grant.kind is
    'What redeeming it does: claim starts an attempt, resume continues the paused one, reclaim takes over a '
    'crashed one.';
comment on column ff_claim_grant.worker_id is 'The worker it is for.';
comment on column ff_claim_grant.worker_instance_id is 'The process of that worker it is for.';
comment on column ff_claim_grant.lane_id is 'The lane of the execution.';
comment on column ff_claim_grant.capabilities is 'The capabilities of the worker, as given when it was issued.';
comment on column ff_claim_grant.admission_summary is 'A note of the scheduler that issued it; NULL: none.';
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
comment on column ff_idempotency.namespace is 'The namespace of the submission.';
comment on column ff_idempotency.idempotency_key is 'The key, as given by the submitter.';
comment on column ff_idempotency.partition_key is 'The last byte of execution_id.';
comment on column ff_idempotency.execution_id is
    'The execution that was created, which a repeated request returns. It may have been deleted.';
comment on column ff_idempotency.expires_at_ms is
    'The end of the window (Unix time in ms): afterwards a request with this key creates another execution.';
comment on column ff_idempotency.request_hash is
    'The sha256 of the request. A live key with another request is an error.';
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
comment on column ff_lane_registry.lane_id is 'The name of the lane.';
comment on column ff_lane_registry.state is 'active, paused, draining or disabled.';
comment on column ff_lane_registry.state_reason is
    'Why it is in this state, as given by the operator; NULL: not given.';
comment on column ff_lane_registry.state_changed_at_ms is 'When the state was last changed (Unix time in ms).';
comment on column ff_lane_registry.registered_at_ms is 'When it was first used (Unix time in ms).';
comment on column ff_lane_registry.registered_by is 'The operation that first used it.';
comment on column ff_lane_registry.wake_armed is
    'Whether a claim found no work: the next execution that becomes ready sends a notification and resets it.';
comment on column ff_lane_registry.last_event_ord is
    'The ord of its last event in ff_event_log; its next event has this one or a greater one.';

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
comment on column ff_worker_registry.namespace is 'The namespace it registered in.';
comment on column ff_worker_registry.worker_instance_id is 'The process, as named by itself.';
comment on column ff_worker_registry.worker_id is 'The worker that the process belongs to.';
comment on column ff_worker_registry.lanes is 'The lanes it claims from, sorted.';
comment on column ff_worker_registry.capabilities is 'The capabilities it offers, sorted.';
comment on column ff_worker_registry.last_heartbeat_ms is
    'When it registered or last sent a heartbeat (Unix time in ms).';
comment on column ff_worker_registry.liveness_ttl_ms is 'How long after a heartbeat it counts as alive, in ms.';
comment on column ff_worker_registry.registered_at_ms is 'When it registered (Unix time in ms).';
comment on column ff_worker_registry.last_event_ord is
    'The ord of its last event in ff_event_log; its next event has this one or a greater one.';
