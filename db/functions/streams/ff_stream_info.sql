create or replace function ff_stream_info(
    p_execution_id text,
    p_attempt_index int,
    out frame_count bigint,
    out retained bigint,
    out last_frame_id text,
    out summary_version int,
    out closed_at_ms bigint,
    out closed_reason text
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__stream_of(p_execution_id, p_attempt_index);
    v_now bigint := ff__now_ms();
begin
    select coalesce(m.frame_count, 0), coalesce(m.last_ts_ms, 0) || '-' || coalesce(m.last_seq, 0),
           coalesce(m.summary_count, 0)::int, coalesce(m.closed_at_ms, a.ended_at_ms),
           coalesce(m.closed_reason, ff__close_reason(a.outcome)),
           (select count(*) from ff_stream_frame f
             where f.execution_id = a.execution_id and f.attempt_index = a.attempt_index
               and (f.expires_at_ms is null or f.expires_at_ms > v_now))
      into ff_stream_info.frame_count, last_frame_id, ff_stream_info.summary_version, ff_stream_info.closed_at_ms,
           ff_stream_info.closed_reason, retained
      from ff_attempt a
      left join ff_stream_meta m on m.execution_id = a.execution_id and m.attempt_index = a.attempt_index
     where a.execution_id = v_id and a.attempt_index = p_attempt_index;
end
$$;

comment on function ff_stream_info(text, int) is
$$The state of the stream of one attempt: frames ever written, frames that can still be read, the last id, the version
of the summary, when and why it closed. A reader has all frames when closed_at_ms is set and last_frame_id is not after
its cursor. An attempt without frames has zeros, and last_frame_id 0-0; its stream closes with the attempt too.

Outcomes: closed_reason = attempt_success | attempt_failure | attempt_cancelled | expired | reclaimed
Outcomes: closed_reason = suspension_timeout | dependency_impossible
Nullable: closed_at_ms, closed_reason
Errors: invalid_input, invalid_execution_id, execution_not_found, attempt_not_found$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
