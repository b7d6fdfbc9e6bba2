-- Locks: the execution, then the stream's meta row; the time is read after both. Order of checks: shape, handle, patch,
-- terminal, fence, closed, frame key. Replay: by frame key, while the frame is kept.
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
    perform ff__check_frame(p_payload, p_frame_type, p_mode, p_encoding, p_correlation_id, p_frame_key, p_maxlen, p_ttl_ms,
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
    elsif ff__verdict(e, v_fence, null) is not null then
        -- Raises; unless the clock has gone back, which makes the lease a live one again.
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
                       -- Not less than 1e-300: below, PostgreSQL calls the product an underflow.
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
    -- At most one notification in 50 ms; a clock that went back does not silence it.
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
        perform ff__ring_stream(e.execution_id, e.current_attempt_index);
    end if;
end
$$;

comment on function ff_append_frame(text, bytea, text, text, text, text, text, int, int, int, int, float8) is
$$Appends one frame to the stream of the attempt that the handle holds. Frame ids grow strictly, also when the clock steps
back. p_mode:
durable: kept; of each stream the last p_maxlen, or as many as it was last given, or policy.stream_policy.maxlen, or 10000.
durable_summary: the payload is a JSON merge patch (RFC 7396) for the stream's document, see ff_read_summary. The string
"__ff_null__" as a value stands for a json null in the document. The last 64 patches are kept as frames.
best_effort_live: readers see it for p_ttl_ms, and of a stream only about as many as twice that time brings, between
p_maxlen_floor and p_maxlen_ceiling; p_ema_alpha is the weight of the newest interval in the measured rate.
p_frame_key ('' = none): the same frame again answers with the first one, replayed = true, as long as that is kept.
p_encoding says how to read the payload, which is stored byte by byte.

Nullable: summary_version
Errors: invalid_input, invalid_frame_type, invalid_stream_mode, payload_too_large, invalid_handle, invalid_patch, summary_too_large, execution_not_found, stream_closed, execution_not_active, stale_lease, lease_revoked, lease_expired, frame_conflict$$;
