-- Streams: output of an attempt while it runs. One meta row per stream, one row per frame, one document per stream.

set local lock_timeout = '10s';

create type ff_frame_id as (
    ts_ms bigint,
    seq   int
);
comment on type ff_frame_id is 'A position in a stream. Internal.';

create type ff_event_place as (
    gen      int,
    ord      bigint,
    event_id bigint
);
comment on type ff_event_place is 'A position in the order of events. Internal.';

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
comment on column ff_stream_meta.execution_id is 'The execution.';
comment on column ff_stream_meta.frame_count is 'How many frames were appended, in all modes.';
comment on column ff_stream_meta.durable_count is 'How many of them are durable.';
comment on column ff_stream_meta.summary_count is 'How many of them are patches of the summary.';
comment on column ff_stream_meta.live_count is 'How many of them are live.';
comment on column ff_stream_meta.total_bytes is 'The size of all appended payloads, in bytes.';
comment on column ff_stream_meta.last_ts_ms is
    'The time in the id of the last frame (Unix time in ms); 0 before the first.';
comment on column ff_stream_meta.live_last_ms is
    'The time of the last live frame (Unix time in ms); NULL before the first.';
comment on column ff_stream_meta.watch_until_ms is
    'Until when watchers are notified of frames (Unix time in ms); NULL: never watched. Set by ff_watch_stream.';
comment on column ff_stream_meta.notified_at_ms is
    'When watchers were last notified (Unix time in ms); NULL: not since the last ff_watch_stream.';
comment on column ff_stream_meta.closed_at_ms is 'When the stream was closed (Unix time in ms); NULL: it is open.';
comment on column ff_stream_meta.ema_rate_hz is
    'The rate of live frames per second, as a moving average: how many are kept depends on it. NULL before the '
    'first.';
comment on column ff_stream_meta.attempt_index is 'The attempt that writes the stream, from 0.';
comment on column ff_stream_meta.last_seq is 'The number in the id of the last frame, among frames of one millisecond.';
comment on column ff_stream_meta.maxlen is
    'How many durable frames are kept, as last given by ff_append_frame; NULL: as the policy says.';
comment on column ff_stream_meta.closed_reason is 'Why the stream was closed; NULL: it is open.';

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
comment on column ff_stream_frame.execution_id is 'The execution.';
comment on column ff_stream_frame.ts_ms is
    'The time in the frame id (Unix time in ms), which never decreases in a stream.';
comment on column ff_stream_frame.mode_no is
    'Its number among the frames of this mode, from 1: the oldest are deleted by it.';
comment on column ff_stream_frame.expires_at_ms is 'When it is deleted (Unix time in ms); NULL: not live.';
comment on column ff_stream_frame.attempt_index is 'The attempt that wrote it, from 0.';
comment on column ff_stream_frame.seq is 'The number in the frame id, from 0, among frames of one millisecond.';
comment on column ff_stream_frame.summary_version is
    'The version of the summary after this patch; NULL for other modes.';
comment on column ff_stream_frame.frame_type is 'The type, as named by the worker.';
comment on column ff_stream_frame.mode is 'durable, durable_summary (a patch) or best_effort_live.';
comment on column ff_stream_frame.encoding is 'The encoding of the payload, as named by the worker.';
comment on column ff_stream_frame.source is 'The worker process that wrote it.';
comment on column ff_stream_frame.correlation_id is 'A text of the worker; NULL: not given.';
comment on column ff_stream_frame.frame_key is 'The key by which a repeated append returns this frame; NULL: none.';
comment on column ff_stream_frame.payload is 'The content, stored unchanged.';
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
comment on column ff_stream_summary.execution_id is 'The execution.';
comment on column ff_stream_summary.first_applied_ms is 'The time of the first patch (Unix time in ms).';
comment on column ff_stream_summary.last_updated_ms is 'The time of the last patch (Unix time in ms).';
comment on column ff_stream_summary.attempt_index is 'The attempt that wrote it, from 0.';
comment on column ff_stream_summary.version is 'How many patches were applied.';
comment on column ff_stream_summary.patch_kind is 'The kind of patches: json_merge_patch (RFC 7396).';
comment on column ff_stream_summary.document is 'The document after all patches.';
