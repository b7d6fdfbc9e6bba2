-- Rules of the streams that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_streams() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
with m as not materialized (select x.*, x.execution_id || ' attempt ' || x.attempt_index as name from ff_stream_meta x),
     f as not materialized (select x.*, x.execution_id || ' attempt ' || x.attempt_index as name from ff_stream_frame x)
    select 'frame_order', v.name, format('frame %s-%s has number %s in mode %s, the one before %s', v.ts_ms, v.seq,
                                         v.mode_no, v.mode, v.before)
      from (select f.*, lag(f.mode_no) over (partition by f.execution_id, f.attempt_index, f.mode
                                             order by f.ts_ms, f.seq) as before from f) v
     where v.mode_no <= v.before
    union all
    select 'frame_id_ahead', f.name, format('frame %s-%s is after the last id %s-%s', f.ts_ms, f.seq, m.last_ts_ms,
                                            m.last_seq)
      from f left join m on m.execution_id = f.execution_id and m.attempt_index = f.attempt_index
     where m.execution_id is null or (f.ts_ms, f.seq) > (m.last_ts_ms, m.last_seq)
    union all
    select 'frame_number_ahead', f.name,
           format('frame %s-%s has number %s in mode %s', f.ts_ms, f.seq, f.mode_no, f.mode)
      from f join m on m.execution_id = f.execution_id and m.attempt_index = f.attempt_index
     where f.mode_no > case f.mode when 'durable' then m.durable_count when 'durable_summary' then m.summary_count
                                   when 'best_effort_live' then m.live_count else 0 end
    union all
    select 'frame_count', m.name, format('%s frames counted, %s by mode', m.frame_count,
                                         m.durable_count + m.summary_count + m.live_count)
      from m where m.frame_count <> m.durable_count + m.summary_count + m.live_count
    union all
    select 'frames_kept', m.name, format('%s frames of mode %s are kept, the bound is %s', k.kept, k.mode, k.bound)
      from m
      join lateral (select f.mode, count(*) as kept,
                           case f.mode when 'durable_summary' then 64
                                       when 'durable' then coalesce(m.maxlen,
                                                (select (c.policy #> '{stream_policy,maxlen}')::int from ff_execution c
                                                  where c.execution_id = m.execution_id), 10000)
                                       else 100000 end as bound
                      from f where f.execution_id = m.execution_id and f.attempt_index = m.attempt_index
                     group by f.mode) k on k.kept > k.bound
    union all
    select 'frame_expiry', f.name,
           format('frame %s-%s of mode %s expires at %s', f.ts_ms, f.seq, f.mode, f.expires_at_ms)
      from f where (f.expires_at_ms is not null) <> (f.mode = 'best_effort_live')
    union all
    select 'stream_closed', m.name, format('closed at %s, reason %s', m.closed_at_ms, m.closed_reason)
      from m
     where (m.closed_at_ms is null) <> (m.closed_reason is null)
        or m.closed_reason not in ('attempt_success', 'attempt_failure', 'attempt_cancelled', 'expired', 'reclaimed',
                                   'suspension_timeout', 'dependency_impossible')
    union all
    select 'stream_attempt', m.name, format('attempt is %s, stream closed at %s', a.state, m.closed_at_ms)
      from m left join ff_attempt a on a.execution_id = m.execution_id and a.attempt_index = m.attempt_index
     where a.execution_id is null or (a.ended_at_ms is null) <> (m.closed_at_ms is null)
    union all
    select 'stream_open', ff__wire_id(c.partition_key, c.execution_id), format('stream_open is %s', c.stream_open)
      from ff_execution c
      left join (select distinct x.execution_id from ff_stream_meta x where x.closed_at_ms is null) o
                on o.execution_id = c.execution_id
     where c.stream_open <> (o.execution_id is not null)
    union all
    select 'summary', m.name, format('%s patches, version %s', m.summary_count, s.version)
      from m left join ff_stream_summary s on s.execution_id = m.execution_id and s.attempt_index = m.attempt_index
     where m.summary_count <> coalesce(s.version, 0)
    union all
    select 'summary_document', s.execution_id || ' attempt ' || s.attempt_index, jsonb_typeof(s.document)
      from ff_stream_summary s
     where jsonb_typeof(s.document) <> 'object' or strpos(s.document::text, '__ff_null__') > 0
        or not exists (select from m where m.execution_id = s.execution_id and m.attempt_index = s.attempt_index);
end
$$;
