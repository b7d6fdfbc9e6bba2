-- Locks: the execution, then the stream's meta row; the clock is read after both. Order of checks: shape, handle,
-- patch, terminal, fence, closed, frame key. Replay: by frame key, while the frame is kept.
create or replace function ff_append_frame(
    p_handle text,
    p_payload bytea,
    p_frame_type text default 'event',
    p_mode text default 'durable',
    p_encoding text default 'utf8',
    p_correlation_id text default null,
    p_frame_key text default null,
    p_maxlen int default null,
    p_ttl_ms int default 10000,
    p_maxlen_floor int default 64,
    p_maxlen_ceiling int default 16384,
    p_ema_alpha float8 default 0.2,
    out frame_id text,
    out ts_ms bigint,
    out seq int,
    out frame_count bigint,
    out summary_version int,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v_key text := nullif(p_frame_key, '');
    v_fence ff_fence;
    v_patch jsonb;
    v_live boolean := p_mode = 'best_effort_live';
    v_ttl_s float8 := p_ttl_ms::float8 / 1000;
    v_rate float8;
    v_no bigint;
    v_keep bigint;
    v_ring boolean;
    e ff_exec;
    m ff_stream_meta;
    f ff_stream_frame;
begin
    perform ff__check_frame(p_payload, p_frame_type, p_mode, p_encoding, p_correlation_id, p_frame_key, p_maxlen,
                            p_ttl_ms,
                            p_maxlen_floor, p_maxlen_ceiling, p_ema_alpha);
    v_fence := ff__decode_handle(p_handle);
    if p_mode = 'durable_summary' then
        v_patch := ff__parse_patch(p_payload, v_fence.wire_id);
    end if;
    e := ff__open(v_fence.execution_id);
    select x.* into m from ff_stream_meta x
     where x.execution_id = e.execution_id and x.attempt_index = e.current_attempt_index for update;
    e.now_ms := ff__now_ms();
    if e.lifecycle_phase = 'terminal' then
        perform ff__stream_closed(e, v_fence.attempt_index);
    elsif ff__fence_status(e, v_fence, null) is not null then
        -- Raises, unless the clock has gone back and the lease is live again.
        e := ff__fence(v_fence);
    end if;
    if m.closed_at_ms is not null then
        perform ff__stream_closed(e, e.current_attempt_index);
    elsif m.execution_id is null then
        perform ff__open_stream(e);
        select x.* into m from ff_stream_meta x
         where x.execution_id = e.execution_id and x.attempt_index = e.current_attempt_index;
    elsif v_key is not null then
        select x.* into f from ff_stream_frame x
         where x.execution_id = e.execution_id and x.attempt_index = e.current_attempt_index and x.frame_key = v_key;
        if found then
            if (f.frame_type, f.mode, f.payload) is distinct from (p_frame_type, p_mode, p_payload) then
                perform ff__raise('frame_conflict', format('another frame of this stream has the key %s', v_key),
                                  jsonb_build_object('execution_id', v_fence.wire_id, 'frame_key', v_key,
                                                     'frame_id', f.ts_ms || '-' || f.seq));
            end if;
            ts_ms := f.ts_ms;
            seq := f.seq;
            frame_id := f.ts_ms || '-' || f.seq;
            frame_count := m.frame_count;
            summary_version := f.summary_version;
            replayed := true;
            return;
        end if;
    end if;

    ts_ms := greatest(e.now_ms, m.last_ts_ms);
    seq := case when ts_ms = m.last_ts_ms then m.last_seq + 1 else 0 end;
    frame_id := ts_ms || '-' || seq;
    frame_count := m.frame_count + 1;
    replayed := false;
    if v_live then
        v_no := m.live_count + 1;
        v_rate := case when m.live_last_ms is null then p_maxlen_floor / (2 * v_ttl_s)
                       -- At least 1e-300: below, PostgreSQL raises an underflow error for the product.
                       else greatest(p_ema_alpha, 1e-300::float8) * 1000 / greatest(1, ts_ms - m.live_last_ms)
                            + (1 - p_ema_alpha) * m.ema_rate_hz end;
        v_keep := least(greatest(ceil(2 * v_rate * v_ttl_s), p_maxlen_floor), p_maxlen_ceiling);
    elsif p_mode = 'durable' then
        v_no := m.durable_count + 1;
        v_keep := coalesce(p_maxlen, m.maxlen,
                           (select (c.policy #> '{stream_policy,maxlen}')::int from ff_execution c
                             where c.execution_id = e.execution_id), 10000);
    else
        v_no := m.summary_count + 1;
        v_keep := 64;
        summary_version := ff__apply_patch(e, v_patch, ts_ms);
    end if;
    -- At most one notification in 50 ms; a clock that goes back does not suppress it.
    v_ring := coalesce(m.watch_until_ms > e.now_ms, false)
              and coalesce(e.now_ms - m.notified_at_ms not between 0 and 49, true);

    update ff_stream_meta x set
        frame_count = ff_append_frame.frame_count,
        durable_count = x.durable_count + (p_mode = 'durable')::int,
        summary_count = x.summary_count + (p_mode = 'durable_summary')::int,
        live_count = x.live_count + v_live::int,
        total_bytes = x.total_bytes + octet_length(p_payload),
        last_ts_ms = ff_append_frame.ts_ms, last_seq = ff_append_frame.seq,
        maxlen = case when p_mode = 'durable' then coalesce(p_maxlen, x.maxlen) else x.maxlen end,
        ema_rate_hz = case when v_live then v_rate else x.ema_rate_hz end,
        live_last_ms = case when v_live then ff_append_frame.ts_ms else x.live_last_ms end,
        notified_at_ms = case when v_ring then e.now_ms else x.notified_at_ms end
     where x.execution_id = e.execution_id and x.attempt_index = e.current_attempt_index;
    insert into ff_stream_frame (
        execution_id, attempt_index, ts_ms, seq, frame_type, mode, mode_no, payload, encoding, source, correlation_id,
        summary_version, frame_key, expires_at_ms)
    values (
        e.execution_id, e.current_attempt_index, ff_append_frame.ts_ms, ff_append_frame.seq, p_frame_type, p_mode, v_no,
        p_payload, p_encoding, e.worker_instance_id, p_correlation_id, ff_append_frame.summary_version, v_key,
        case when v_live then ff_append_frame.ts_ms + p_ttl_ms end);
    if v_no > v_keep then
        delete from ff_stream_frame x
         where x.execution_id = e.execution_id and x.attempt_index = e.current_attempt_index and x.mode = p_mode
           and x.mode_no <= v_no - v_keep;
    end if;
    if v_ring then
        perform ff__notify_stream(e.execution_id, e.current_attempt_index);
    end if;
end
$$;

comment on function ff_append_frame(text, bytea, text, text, text, text, text, int, int, int, int, float8) is
$$Appends one frame to the stream of the attempt of the handle. Frame ids grow strictly, also when the clock steps back.
p_mode:
durable: kept; of each stream the last p_maxlen, else the last value given, policy.stream_policy.maxlen, or 10000.
durable_summary: the payload is a JSON merge patch (RFC 7396) for the stream's document, see ff_read_summary. The string
"__ff_null__" as a value stands for a json null in the document. The last 64 patches are kept as frames.
best_effort_live: readable for p_ttl_ms; a stream keeps about as many as arrive in twice that time, between
p_maxlen_floor and p_maxlen_ceiling; p_ema_alpha is the weight of the newest interval in the measured rate.
p_frame_key ('' = none): a repeated frame returns the first one, replayed = true, while that is kept.
p_encoding is the encoding of the payload, which is stored unchanged.

Nullable: summary_version
Errors: invalid_input, invalid_frame_type, invalid_stream_mode, payload_too_large, invalid_handle, invalid_patch
Errors: summary_too_large, execution_not_found, stream_closed, execution_not_active, stale_lease, lease_revoked
Errors: lease_expired, frame_conflict$$;
-- grant: ff_worker, ff_admin

-- Checks the arguments of a frame. Reads the limit of payloads, no other row.
-- Errors: invalid_input, invalid_frame_type, invalid_stream_mode, payload_too_large.
create or replace function ff__check_frame(
    p_payload bytea, p_frame_type text, p_mode text, p_encoding text, p_correlation_id text, p_frame_key text,
    p_maxlen int, p_ttl_ms int, p_maxlen_floor int, p_maxlen_ceiling int, p_ema_alpha float8
) returns void
language plpgsql stable
as $$
begin
    if p_frame_type is null or length(p_frame_type) > 64 or p_frame_type !~ '^[a-z0-9_.:-]{1,64}$' then
        perform ff__raise('invalid_frame_type',
                          'a frame type is 1 to 64 characters of a-z, 0-9, dot, colon, dash and underscore',
                          jsonb_build_object('frame_type', left(p_frame_type, 64)));
    elsif p_mode is null or p_mode not in ('durable', 'durable_summary', 'best_effort_live') then
        perform ff__raise('invalid_stream_mode', 'the mode is none of durable, durable_summary, best_effort_live',
                          jsonb_build_object('mode', left(p_mode, 64)));
    elsif p_payload is null then
        perform ff__invalid('p_payload', 'must not be null');
    end if;
    perform ff__check_size('max_payload_bytes', 'payload', p_payload);
    if p_maxlen not between 1 and 1000000 then
        perform ff__invalid('p_maxlen', 'must be between 1 and 1000000', jsonb_build_object('value', p_maxlen));
    elsif p_ttl_ms is null or p_ttl_ms not between 100 and 600000 then
        perform ff__invalid('p_ttl_ms', 'must be between 100 and 600000', jsonb_build_object('value', p_ttl_ms));
    elsif p_maxlen_ceiling is null or p_maxlen_ceiling not between 1 and 100000 then
        perform ff__invalid('p_maxlen_ceiling', 'must be between 1 and 100000',
                            jsonb_build_object('value', p_maxlen_ceiling));
    elsif p_maxlen_floor is null or p_maxlen_floor not between 1 and p_maxlen_ceiling then
        perform ff__invalid('p_maxlen_floor', 'must be between 1 and p_maxlen_ceiling',
                            jsonb_build_object('value', p_maxlen_floor));
    elsif p_ema_alpha is null or not (p_ema_alpha > 0 and p_ema_alpha <= 1) then
        perform ff__invalid('p_ema_alpha', 'must be more than 0 and at most 1');
    elsif length(p_frame_key) > 256 then
        perform ff__invalid('p_frame_key', 'must have at most 256 characters');
    elsif length(p_correlation_id) > 256 then
        perform ff__invalid('p_correlation_id', 'must have at most 256 characters');
    end if;
    perform ff__check_text('p_encoding', p_encoding, 0, 64);
end
$$;

-- The merge patch in a payload. PostgreSQL 15 can only check whether a text is json by casting it, so this function
-- catches the exception; it is called for summaries only. Errors: invalid_patch (DETAIL.reason).
create or replace function ff__parse_patch(p_payload bytea, p_wire_id text) returns jsonb
language plpgsql stable
as $$
declare
    v_patch jsonb;
    v_reason text;
begin
    begin
        v_patch := convert_from(p_payload, 'UTF8')::jsonb;
    exception
        when program_limit_exceeded then v_reason := 'depth';
        when data_exception then v_reason := 'not_json';
    end;
    if v_reason is null and jsonb_typeof(v_patch) <> 'object' then
        v_reason := 'not_an_object';
    elsif v_reason is null
          and jsonb_path_exists(v_patch, 'strict $.**{16} ? (@.type() == "object" || @.type() == "array")') then
        v_reason := 'depth';
    elsif v_reason is null and strpos(ff__null_values(v_patch::text), '__ff_null__') > 0 then
        -- In a key, or inside a longer string, it would remain in the document.
        v_reason := 'reserved_word';
    end if;
    if v_reason is not null then
        perform ff__raise('invalid_patch', format('the payload is not a merge patch: %s', v_reason),
                          jsonb_build_object('execution_id', p_wire_id, 'reason', v_reason));
    end if;
    return v_patch;
end
$$;

-- Raises stream_closed if the stream is closed.
create or replace function ff__stream_closed(e ff_exec, p_attempt_index int) returns void
language plpgsql stable
as $$
declare
    v_id text := ff__wire_id(e.partition_key, e.execution_id);
begin
    perform ff__raise('stream_closed', format('the stream of attempt %s of execution %s is closed', p_attempt_index,
                                              v_id),
                      jsonb_build_object('execution_id', v_id, 'attempt_index', p_attempt_index,
                                         'public_state', e.public_state,
                                         'closed_reason', (select coalesce(m.closed_reason, ff__close_reason(a.outcome))
                                                             from ff_attempt a
                                                             left join ff_stream_meta m
                                                               on m.execution_id = a.execution_id
                                                              and m.attempt_index = a.attempt_index
                                                            where a.execution_id = e.execution_id
                                                              and a.attempt_index = p_attempt_index)));
end
$$;

-- Applies a patch to the summary document of a stream, under the stream's lock. Returns the new version.
-- Errors: summary_too_large.
create or replace function ff__apply_patch(e ff_exec, p_patch jsonb, p_ts_ms bigint) returns int
language plpgsql volatile
as $$
declare
    c_max int := 1048576;
    v_document jsonb;
    v_text text;
    v_version int;
begin
    select s.document into v_document from ff_stream_summary s
     where s.execution_id = e.execution_id and s.attempt_index = e.current_attempt_index;
    v_document := ff__merge_patch(v_document, p_patch);
    v_text := v_document::text;
    if strpos(v_text, '__ff_null__') > 0 then
        v_text := ff__null_values(v_text);
        v_document := v_text::jsonb;
    end if;
    if octet_length(v_text) > c_max then
        perform ff__raise('summary_too_large',
                          format('the summary would have %s bytes, %s are allowed', octet_length(v_text), c_max),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'size', octet_length(v_text), 'limit', c_max));
    end if;
    insert into ff_stream_summary as s (
        execution_id, attempt_index, document, version, patch_kind, first_applied_ms, last_updated_ms)
    values (e.execution_id, e.current_attempt_index, v_document, 1, 'json_merge_patch', p_ts_ms, p_ts_ms)
    on conflict (execution_id, attempt_index) do update
        set document = excluded.document, version = s.version + 1, last_updated_ms = excluded.last_updated_ms
    returning s.version into v_version;
    return v_version;
end
$$;

-- RFC 7396: p_patch applied to p_target. Null deletes, objects merge, other values replace; an object over
-- another value starts from {}.
create or replace function ff__merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
declare
    v_target jsonb := case when jsonb_typeof(p_target) = 'object' then p_target else '{}' end;
    v_deleted text[];
    v_merged jsonb;
begin
    if jsonb_typeof(p_patch) <> 'object' then
        return p_patch;
    end if;
    select array_agg(x.key) filter (where jsonb_typeof(x.value) = 'null'),
           jsonb_object_agg(x.key, case when jsonb_typeof(x.value) = 'object'
                                        then ff__merge_patch(v_target -> x.key, x.value) else x.value end)
               filter (where jsonb_typeof(x.value) <> 'null')
      into v_deleted, v_merged
      from jsonb_each(p_patch) x;
    if v_deleted is not null then
        v_target := v_target - v_deleted;
    end if;
    return v_target || coalesce(v_merged, '{}');
end
$$;

-- A jsonb document as text, with json null for each value that is the string __ff_null__. In that text a value follows
-- a space or a bracket, and a key after one is followed by a colon; a quote inside a string is preceded by a backslash.
create or replace function ff__null_values(p_document text) returns text
language sql immutable parallel safe
as $$
    select case when strpos(p_document, '__ff_null__') = 0 then p_document
                else regexp_replace(p_document, E'([ \\[])"__ff_null__"(?=[],}])', E'\\1null', 'g') end
$$;
