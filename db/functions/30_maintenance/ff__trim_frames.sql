-- The deletions of ff_trim_streams, by the keys that it found (a json array of execution, attempt, time and seq): looked at
-- again under their locks, busy ones left. Returns how many went.
create or replace function ff__trim_frames(p_keys text[], p_now_ms bigint) returns int
language plpgsql volatile
as $$
declare
    v_done int;
begin
    with k as materialized (
        select (x.key::jsonb ->> 0)::uuid as execution_id, (x.key::jsonb ->> 1)::int as attempt_index,
               (x.key::jsonb ->> 2)::bigint as ts_ms, (x.key::jsonb ->> 3)::bigint as seq
          from unnest(p_keys) x(key)),
    locked as materialized (
        select k.*
          from k cross join lateral (
               select from ff_stream_frame f
                where f.execution_id = k.execution_id and f.attempt_index = k.attempt_index
                  and f.ts_ms = k.ts_ms and f.seq = k.seq and f.expires_at_ms <= p_now_ms
                  for update skip locked) l)
    delete from ff_stream_frame f using locked l
     where f.execution_id = l.execution_id and f.attempt_index = l.attempt_index and f.ts_ms = l.ts_ms and f.seq = l.seq;
    get diagnostics v_done = row_count;
    return v_done;
end
$$;
