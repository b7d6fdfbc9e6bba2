-- Suspension: the keys that sign waitpoint tokens, suspensions, waitpoints, signals.

set local lock_timeout = '10s';

insert into ff_setting (name, value, description) values
    ('max_payload_bytes', '65536', 'the largest payload of a signal or stream frame, in bytes'),
    ('max_name_chars', '256', 'the longest name, key, source identity or correlation id, in characters'),
    ('max_waitpoints_per_suspension', '64', 'how many waitpoints one suspension may bind'),
    ('max_condition_nodes', '64', 'how many nodes a resume condition may have'),
    ('max_open_waitpoints', '1000', 'how many waitpoints of one execution may be open at a time');

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
create unique index ff_waitpoint_hmac_one_active on ff_waitpoint_hmac (active) where active;
revoke all on ff_waitpoint_hmac from public;

-- suspension_no counts the suspensions of an execution: two may have the same millisecond. waitpoint_ids: the bound
-- waitpoints by ordinal: a waitpoint may be bound again later, and a repeated call still returns the first result.
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
    forgotten            boolean not null default false, -- its signals are not passed to later attempts
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
create unique index ff_signal_seq on ff_signal (execution_id, seq);
create index ff_signal_suspension on ff_signal (suspension_id, seq);
create index ff_signal_key on ff_signal (waitpoint_id, idempotency_key) where idempotency_key is not null;

-- A waitpoint as a suspension binds it. Internal.
create type ff_binding as (
    waitpoint_key text,
    waitpoint_id  uuid,
    pending       boolean
);

-- A signal as a resume condition sees it. Internal.
create type ff_seen_signal as (
    signal_id       uuid,
    waitpoint_key   text,
    signal_name     text,
    source_type     text,
    source_identity text
);

-- The result of ff_suspend, one row per waitpoint. Internal: public signatures list the columns.
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

-- The result of the delivery of a signal. Internal.
create type ff_signal_row as (
    outcome      text,
    signal_id    uuid,
    effect       text,
    matched      boolean,
    resumed      boolean,
    public_state text
);
