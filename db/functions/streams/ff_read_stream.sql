create or replace function ff_read_stream(
    p_execution_id text,
    p_attempt_index int,
    p_from text default 'start',
    p_to text default 'end',
    p_limit int default 100,
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
language plpgsql stable security definer
as $$
declare
    v_from ff_frame_id := ff__frame_id('p_from', p_from, true, 0);
    v_to ff_frame_id := ff__frame_id('p_to', p_to, true, 2147483647);
    v_id uuid;
begin
    perform ff__check_limit(p_limit, 10000);
    perform ff__check_visibility(p_visibility);
    v_id := ff__stream_of(p_execution_id, p_attempt_index);
    return query
        select f.ts_ms || '-' || f.seq, f.ts_ms, f.seq, f.frame_type, f.mode, f.payload, f.encoding, f.source,
               f.correlation_id, f.summary_version
          from ff__read_frames(v_id, p_attempt_index, v_from, v_to, p_limit, p_visibility) f;
end
$$;

comment on function ff_read_stream(text, int, text, text, int, text) is
$$Frames of the stream of one attempt in their order, from p_from to p_to, both included: start, end, <ms> or
<ms>-<seq>; a bare <ms> means all of that millisecond. At most p_limit (up to 10000); a short page is the last one.
p_visibility: all, or exclude_best_effort.

Outcomes: mode = durable | durable_summary | best_effort_live
Nullable: correlation_id, summary_version
Errors: invalid_input, invalid_execution_id, invalid_cursor, execution_not_found, attempt_not_found$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
