-- Streams: output of an attempt while it runs. One meta row per stream, one row per frame, one document per stream.

set local lock_timeout = '10s';

-- A position in a stream. Internal.
create type ff_frame_id as (
    ts_ms bigint,
    seq   int
);

-- A position in the order of events. Internal.
create type ff_event_place as (
    gen      int,
    ord      bigint,
    event_id bigint
);

-- Updated by every append, never in an indexed column: the update stays HOT.
create table ff_stream_meta (
    execution_id   uuid   not null,
    frame_count    bigint not null default 0,
    durable_count  bigint not null default 0,
    summary_count  bigint not null default 0,
    live_count     bigint not null default 0,
    total_bytes    bigint not null default 0,
    last_ts_ms     bigint not null default 0,
    live_last_ms   bigint,
    watch_until_ms bigint,
    notified_at_ms bigint,
    closed_at_ms   bigint,
    ema_rate_hz    float8,
    attempt_index  int    not null,
    last_seq       int    not null default 0,
    maxlen         int,
    closed_reason  text
        check (closed_reason in ('attempt_success', 'attempt_failure', 'attempt_cancelled', 'expired', 'reclaimed',
                                 'suspension_timeout', 'dependency_impossible')),
    primary key (execution_id, attempt_index)
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_stream_meta is
    'One row per stream of frames, which belongs to one attempt: counters, the last frame id, until when it is '
    'watched, when it closed.';

create table ff_stream_frame (
    execution_id    uuid   not null,
    ts_ms           bigint not null,
    mode_no         bigint not null,
    expires_at_ms   bigint,
    attempt_index   int    not null,
    seq             int    not null,
    summary_version int,
    frame_type      text   not null,
    mode            text collate "C" not null
        check (mode in ('durable', 'durable_summary', 'best_effort_live')),
    encoding        text   not null,
    source          text   not null,
    correlation_id  text,
    frame_key       text collate "C",
    payload         bytea  not null,
    primary key (execution_id, attempt_index, ts_ms, seq)
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_stream_frame is
    'The frames of the streams that are kept. Read them with ff_read_stream and ff_tail_stream.';
create index ff_stream_frame_mode on ff_stream_frame (execution_id, attempt_index, mode, mode_no);
create unique index ff_stream_frame_key on ff_stream_frame (execution_id, attempt_index, frame_key)
    where frame_key is not null;
create index ff_stream_frame_expires on ff_stream_frame (expires_at_ms) where expires_at_ms is not null;

create table ff_stream_summary (
    execution_id     uuid   not null,
    first_applied_ms bigint not null,
    last_updated_ms  bigint not null,
    attempt_index    int    not null,
    version          int    not null,
    patch_kind       text   not null check (patch_kind = 'json_merge_patch'),
    document         jsonb  not null,
    primary key (execution_id, attempt_index)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.1
);
comment on table ff_stream_summary is
    'The document built by the durable_summary frames of a stream.';
