-- Locks: the frames it deletes (skip locked). Never waits.
create or replace function ff_trim_streams(p_limit int default 1000, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('trim_streams', p_limit);
begin
    -- Not while ff_trim_retention deletes frames: one would wait for the other.
    b.again := b.again and pg_try_advisory_xact_lock(hashtextextended('ff_stream_frame ' || current_schema(), 0));
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select k.key, f.expires_at_ms as due
                  from ff_stream_frame f
                 cross join lateral (select jsonb_build_array(f.execution_id, f.attempt_index, f.ts_ms, f.seq)::text) k(key)
                 where f.expires_at_ms between b.from_ms and b.now_ms
                   and not (b.putting_off and ff__put_off(b.name, k.key))
                   and k.key not in (select unnest(b.seen))
                 order by f.expires_at_ms limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_trim_streams(int) is
$$Deletes best_effort_live frames whose time is over, oldest first, at most p_limit per call (up to 100000); more says
whether to call again. Readers do not see them either way.

Errors: invalid_input$$;
