-- Suspension: the keys that sign waitpoint tokens, suspensions, waitpoints, signals.

set local lock_timeout = '10s';

insert into ff_setting (name, value, description) values
    ('max_payload_bytes', '65536', 'the largest payload of a signal or stream frame, in bytes'),
    ('max_name_chars', '256', 'the longest name, key, source identity or correlation id, in characters'),
    ('max_waitpoints_per_suspension', '64', 'the largest number of waitpoints of one suspension'),
    ('max_condition_nodes', '64', 'the largest number of nodes of a resume condition'),
    ('max_open_waitpoints', '1000', 'the largest number of open waitpoints of one execution');

-- Rarely written, so CHECK constraints are affordable here.
create table ff_waitpoint_hmac (
    kid             text collate "C" not null primary key,
    secret          bytea,
    active          boolean not null,
    installed_at_ms bigint  not null,
    expires_at_ms   bigint,
    gc_at_ms        bigint,
    constraint ff_waitpoint_hmac_active check (not active or (secret is not null and expires_at_ms is null)),
    constraint ff_waitpoint_hmac_retired check (active or expires_at_ms is not null),
    constraint ff_waitpoint_hmac_gc check ((secret is null) = (gc_at_ms is not null)),
    constraint ff_waitpoint_hmac_secret check (octet_length(secret) = 32)
);
comment on table ff_waitpoint_hmac is
    'The keys that sign waitpoint tokens: one active, retired ones until their grace ends, later without secret.';
comment on column ff_waitpoint_hmac.kid is 'The id of the key, which is part of the tokens.';
comment on column ff_waitpoint_hmac.secret is '32 bytes; NULL: forgotten, after the key''s grace.';
comment on column ff_waitpoint_hmac.active is 'Whether new tokens are signed with it.';
comment on column ff_waitpoint_hmac.installed_at_ms is 'When it was installed (Unix time in ms).';
comment on column ff_waitpoint_hmac.expires_at_ms is
    'When tokens signed with it become invalid (Unix time in ms); NULL: the key is active.';
comment on column ff_waitpoint_hmac.gc_at_ms is 'When the secret was deleted (Unix time in ms); NULL: it was not.';
create unique index ff_waitpoint_hmac_one_active on ff_waitpoint_hmac (active) where active;
revoke all on ff_waitpoint_hmac from public;

create table ff_suspension (
    suspension_id        uuid   not null primary key,
    execution_id         uuid   not null,
    lease_id             uuid   not null,
    attempt_id           uuid   not null,
    closer_signal_id     uuid,
    lease_epoch          bigint not null,
    suspended_at_ms      bigint not null,
    timeout_at_ms        bigint,
    escalated_at_ms      bigint,
    last_signal_at_ms    bigint,
    satisfied_at_ms      bigint,
    closed_at_ms         bigint,
    attempt_index        int    not null,
    suspension_no        int    not null,
    outcome              text   not null,
    reason_code          text collate "C" not null,
    requested_by         text   not null,
    timeout_behavior     text,
    close_reason         text,
    resume_trigger       text,
    resumed_by           text,
    reason_detail        text,
    continuation_pointer text,
    idempotency_key      text collate "C",
    request_hash         bytea  not null,
    waitpoint_ids        uuid[] not null,
    condition            jsonb  not null,
    policy               jsonb  not null,
    forgotten            boolean not null default false,
    constraint ff_suspension_words check (
        outcome in ('suspended', 'already_satisfied')
        and reason_code in ('waiting_for_signal', 'waiting_for_approval', 'waiting_for_callback',
                            'waiting_for_tool_result', 'waiting_for_operator_review', 'paused_by_policy',
                            'paused_by_budget', 'step_boundary', 'manual_pause')
        and requested_by in ('worker', 'operator', 'policy', 'system_timeout_policy')
        and timeout_behavior in ('fail', 'cancel', 'expire', 'auto_resume_with_timeout_signal', 'escalate')
        and close_reason in ('resumed', 'operator_resume', 'already_satisfied', 'timed_out_fail', 'timed_out_cancel',
                             'timed_out_expire', 'timed_out_auto_resume', 'attempt_ended')
        and resume_trigger in ('signal', 'auto_resume', 'operator', 'policy'))
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_suspension is
    'One row per suspension of an attempt: what it waits for, until when, how it ended. Closed rows are kept until '
    'retention.';
comment on column ff_suspension.suspension_id is 'The id of the suspension.';
comment on column ff_suspension.execution_id is 'The suspended execution.';
comment on column ff_suspension.lease_id is 'The lease whose holder suspended it.';
comment on column ff_suspension.attempt_id is 'The suspended attempt.';
comment on column ff_suspension.closer_signal_id is 'The signal that satisfied the condition; NULL: none did.';
comment on column ff_suspension.lease_epoch is 'The number of lease_id.';
comment on column ff_suspension.suspended_at_ms is 'When it was suspended (Unix time in ms).';
comment on column ff_suspension.timeout_at_ms is 'When timeout_behavior applies (Unix time in ms); NULL: never.';
comment on column ff_suspension.escalated_at_ms is
    'When its timeout was escalated to operators (Unix time in ms); NULL: it was not.';
comment on column ff_suspension.last_signal_at_ms is
    'When the last signal for it was accepted (Unix time in ms); NULL: none.';
comment on column ff_suspension.satisfied_at_ms is
    'When its condition was satisfied (Unix time in ms); NULL: it was not.';
comment on column ff_suspension.closed_at_ms is 'When it ended (Unix time in ms); NULL: it is open.';
comment on column ff_suspension.attempt_index is 'The number of the suspended attempt, from 0.';
comment on column ff_suspension.suspension_no is
    'Its number among the suspensions of the execution, from 1: two may have the same millisecond.';
comment on column ff_suspension.outcome is
    'suspended; or already_satisfied, if earlier signals satisfied the condition at once.';
comment on column ff_suspension.reason_code is 'What it waits for.';
comment on column ff_suspension.requested_by is
    'worker, operator, policy or system_timeout_policy, as given by the caller.';
comment on column ff_suspension.timeout_behavior is
    'fail, cancel, expire, auto_resume_with_timeout_signal or escalate; NULL: no timeout.';
comment on column ff_suspension.close_reason is 'How it ended; NULL: it is open.';
comment on column ff_suspension.resume_trigger is
    'What resumed it: signal, auto_resume, operator or policy; NULL: it was not resumed.';
comment on column ff_suspension.resumed_by is 'The database user that resumed it as an operator; NULL: none.';
comment on column ff_suspension.reason_detail is 'More on what it waits for, as given by the caller; NULL: not given.';
comment on column ff_suspension.continuation_pointer is
    'A text that the worker keeps with the suspension; NULL: none.';
comment on column ff_suspension.idempotency_key is
    'The key of the call, as given by the worker; NULL: none, or taken over by a later suspension.';
comment on column ff_suspension.request_hash is
    'The sha256 of the call: a repetition with the same one returns the recorded result.';
comment on column ff_suspension.waitpoint_ids is
    'The bound waitpoints by ordinal. Kept here because a waitpoint may be bound again later, and a repeated call '
    'still returns the first result.';
comment on column ff_suspension.condition is 'The condition that resumes it, as given by the caller.';
comment on column ff_suspension.policy is 'What a resume does with waitpoints and signals, with all defaults.';
comment on column ff_suspension.forgotten is 'Whether its signals are withheld from later attempts (ff_forget_steps).';
create unique index ff_suspension_open on ff_suspension (execution_id) where closed_at_ms is null;
create unique index ff_suspension_key on ff_suspension (execution_id, idempotency_key)
    where idempotency_key is not null;
create index ff_suspension_execution on ff_suspension (execution_id, lease_epoch, suspension_no);
create index ff_suspension_timeout on ff_suspension (timeout_at_ms) where closed_at_ms is null;
create index ff_suspension_listed on ff_suspension (suspended_at_ms, execution_id) where closed_at_ms is null;

create table ff_waitpoint (
    waitpoint_id          uuid   not null primary key,
    execution_id          uuid   not null,
    suspension_id         uuid,
    created_at_ms         bigint not null,
    activated_at_ms       bigint,
    expires_at_ms         bigint,
    closed_at_ms          bigint,
    last_signal_at_ms     bigint,
    attempt_index         int    not null,
    ordinal               int,
    signal_count          int    not null default 0,
    matched_count         int    not null default 0,
    state                 text collate "C" not null,
    waitpoint_key         text collate "C" not null,
    token_kid             text collate "C" not null,
    token_fingerprint     text   not null,
    close_reason          text,
    required_signal_names text[] not null default '{}',
    constraint ff_waitpoint_words check (state in ('pending', 'active', 'closed', 'expired'))
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_waitpoint is
    'Where signals arrive: pending until a suspension binds it, active while that waits, then closed or expired. The '
    'token is recomputed, not stored.';
comment on column ff_waitpoint.waitpoint_id is 'The id of the waitpoint, which is in its token.';
comment on column ff_waitpoint.execution_id is 'The execution that waits.';
comment on column ff_waitpoint.suspension_id is 'The suspension that binds it; NULL while it is pending.';
comment on column ff_waitpoint.created_at_ms is 'When it was created (Unix time in ms).';
comment on column ff_waitpoint.activated_at_ms is 'When a suspension bound it last (Unix time in ms); NULL: never.';
comment on column ff_waitpoint.expires_at_ms is
    'When it expires (Unix time in ms): while active, the timeout of its suspension; NULL: never.';
comment on column ff_waitpoint.closed_at_ms is 'When it was closed or expired (Unix time in ms); NULL: it is open.';
comment on column ff_waitpoint.last_signal_at_ms is 'When the last signal was accepted (Unix time in ms); NULL: none.';
comment on column ff_waitpoint.attempt_index is 'The attempt that created it, from 0.';
comment on column ff_waitpoint.ordinal is 'Its position in its suspension, from 0; NULL while it is pending.';
comment on column ff_waitpoint.signal_count is 'How many signals it has accepted.';
comment on column ff_waitpoint.matched_count is 'How many of them match the condition of the suspension.';
comment on column ff_waitpoint.state is 'pending, active, closed or expired.';
comment on column ff_waitpoint.waitpoint_key is 'The name by which a condition refers to it.';
comment on column ff_waitpoint.token_kid is 'The key that signed its current token, in ff_waitpoint_hmac.';
comment on column ff_waitpoint.token_fingerprint is
    'The first 16 hex digits of the sha256 of its current token, to compare tokens without showing them.';
comment on column ff_waitpoint.close_reason is
    'Why it was closed, as in ff_suspension.close_reason or as given by the worker; NULL: it is open.';
comment on column ff_waitpoint.required_signal_names is
    'The names of signals that the condition expects here; empty: any, or pending.';
create index ff_waitpoint_execution on ff_waitpoint (execution_id, waitpoint_id);
create index ff_waitpoint_expires on ff_waitpoint (expires_at_ms) where state = 'pending';

create table ff_signal (
    execution_id     uuid   not null,
    signal_id        uuid   not null,
    seq              bigint not null,
    waitpoint_id     uuid   not null,
    suspension_id    uuid,
    consumed_by      uuid,
    accepted_at_ms   bigint not null,
    dedup_until_ms   bigint,
    matched          boolean,
    discarded        boolean not null default false,
    signal_name      text collate "C" not null,
    signal_category  text   not null,
    source_type      text   not null,
    source_identity  text   not null,
    effect           text   not null,
    correlation_id   text,
    payload_encoding text,
    idempotency_key  text collate "C",
    content_hash     bytea  not null,
    payload          bytea,
    primary key (execution_id, signal_id),
    constraint ff_signal_words check (effect in ('buffered_for_pending_waitpoint', 'appended_to_waitpoint',
                                                 'resume_condition_satisfied'))
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_signal is
    'One row per accepted signal, numbered within its execution. Marked when consumed or discarded, otherwise '
    'immutable.';
comment on column ff_signal.execution_id is 'The execution it was delivered to.';
comment on column ff_signal.signal_id is 'The id of the signal, as given by the sender or made by the engine.';
comment on column ff_signal.seq is 'Its number within the execution, from 1.';
comment on column ff_signal.waitpoint_id is 'The waitpoint it was delivered to.';
comment on column ff_signal.suspension_id is
    'The suspension that it belongs to; NULL: buffered, no suspension has bound the waitpoint.';
comment on column ff_signal.consumed_by is 'The suspension that consumed it when it was resumed; NULL: not consumed.';
comment on column ff_signal.accepted_at_ms is 'When it was accepted (Unix time in ms).';
comment on column ff_signal.dedup_until_ms is
    'Until when idempotency_key returns this signal (Unix time in ms); NULL: no key.';
comment on column ff_signal.matched is 'Whether it matches the condition; NULL while it is buffered.';
comment on column ff_signal.discarded is 'Whether it was dropped, unused, with its waitpoint or suspension.';
comment on column ff_signal.signal_name is 'The name that conditions match.';
comment on column ff_signal.signal_category is 'The category, as given by the sender.';
comment on column ff_signal.source_type is 'The kind of sender; operator for ff_deliver_approval_signal.';
comment on column ff_signal.source_identity is 'The sender, as given by itself.';
comment on column ff_signal.effect is
    'What it did on delivery: buffered_for_pending_waitpoint, appended_to_waitpoint or '
    'resume_condition_satisfied.';
comment on column ff_signal.correlation_id is 'A text of the sender; NULL: not given.';
comment on column ff_signal.payload_encoding is 'The encoding of the payload, as named by the sender.';
comment on column ff_signal.idempotency_key is 'The key, as given by the sender; NULL: none.';
comment on column ff_signal.content_hash is
    'The sha256 of name, waitpoint and payload: a repetition must have the same one.';
comment on column ff_signal.payload is 'The content for the worker; NULL: none.';
create unique index ff_signal_seq on ff_signal (execution_id, seq);
create index ff_signal_suspension on ff_signal (suspension_id, seq);
create index ff_signal_key on ff_signal (waitpoint_id, idempotency_key) where idempotency_key is not null;

create type ff_binding as (
    waitpoint_key text,
    waitpoint_id  uuid,
    pending       boolean
);
comment on type ff_binding is 'A waitpoint as a suspension binds it. Internal.';

create type ff_seen_signal as (
    signal_id       uuid,
    waitpoint_key   text,
    signal_name     text,
    source_type     text,
    source_identity text
);
comment on type ff_seen_signal is 'A signal as a resume condition sees it. Internal.';

create type ff_suspend_row as (
    outcome         text,
    replayed        boolean,
    suspension_id   uuid,
    ordinal         int,
    waitpoint_id    uuid,
    waitpoint_key   text,
    waitpoint_token text,
    timeout_at_ms   bigint,
    handle          text
);
comment on type ff_suspend_row is
    'The result of ff_suspend, one row per waitpoint. Internal: public signatures list the columns.';

create type ff_signal_row as (
    outcome      text,
    signal_id    uuid,
    effect       text,
    matched      boolean,
    resumed      boolean,
    public_state text
);
comment on type ff_signal_row is 'The result of the delivery of a signal. Internal.';
