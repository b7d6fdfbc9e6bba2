-- Takes no lock. VOLATILE, so that each poll has a new snapshot.
create or replace function ff_tail_stream(
    p_execution_id text,
    p_attempt_index int,
    p_after text default '0-0',
    p_limit int default 100,
    p_block_ms int default 0,
    p_visibility text default 'all'
) returns table (
    frame_id text,
    ts_ms bigint,
    seq int,
    frame_type text,
    mode text,
    payload bytea,
    encoding text,
    source text,
    correlation_id text,
    summary_version int
)
language plpgsql volatile security definer
as $$
declare
    c_end ff_frame_id := (9223372036854775807, 2147483647);
    v_after ff_frame_id := ff__frame_id('p_after', p_after, false, 0);
    v_id uuid;
    v_closed boolean;
    v_until timestamptz;
begin
    perform ff__check_limit(p_limit);
    if p_block_ms is null or p_block_ms not between 0 and 30000 then
        perform ff__invalid('p_block_ms', 'must be between 0 and 30000', jsonb_build_object('value', p_block_ms));
    elsif p_block_ms > 0 and current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
        perform ff__invalid('p_block_ms', 'needs READ COMMITTED: this transaction cannot see what others commit');
    end if;
    perform ff__check_visibility(p_visibility);
    v_id := ff__stream_of(p_execution_id, p_attempt_index);
    if p_limit = 0 then
        return;
    end if;
    -- The id right after the cursor. (seq ends at 2147483647: no frame of that millisecond can follow.)
    v_after := case when v_after.seq < 2147483647 then (v_after.ts_ms, v_after.seq + 1)::ff_frame_id
                    when v_after.ts_ms < 9223372036854775807 then (v_after.ts_ms + 1, 0)::ff_frame_id end;
    -- The wait uses real time, not the engine's clock.
    v_until := clock_timestamp() + make_interval(secs => p_block_ms / 1000.0);
    loop
        -- Checked before the frames are read: after the close there are no new ones.
        v_closed := exists (select from ff_attempt a where a.execution_id = v_id
                              and a.attempt_index = p_attempt_index and a.ended_at_ms is not null);
        return query
            select f.ts_ms || '-' || f.seq, f.ts_ms, f.seq, f.frame_type, f.mode, f.payload, f.encoding, f.source,
                   f.correlation_id, f.summary_version
              from ff__read_frames(v_id, p_attempt_index, v_after, c_end, p_limit, p_visibility) f;
        exit when found or v_closed or clock_timestamp() >= v_until;
        perform pg_sleep(least(0.05, extract(epoch from v_until - clock_timestamp())));
    end loop;
end
$$;

comment on function ff_tail_stream(text, int, text, int, int, text) is
$$Frames of the stream of one attempt after p_after (<ms>-<seq>), in their order, at most p_limit (up to 1000).
With p_block_ms (up to 30000) it waits that long for the first one, polling every 50 ms, and returns at once when the
stream is closed.
p_visibility: all, or exclude_best_effort.

Outcomes: mode = durable | durable_summary | best_effort_live
Nullable: correlation_id, summary_version
Errors: invalid_input, invalid_execution_id, invalid_cursor, execution_not_found, attempt_not_found$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
