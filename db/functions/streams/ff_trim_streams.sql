-- Locks: the frames it deletes, without waiting.
create or replace function ff_trim_streams(
    p_limit int default 1000, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    -- Not while ff_trim_retention deletes frames: the two would wait for each other.
    v_free boolean := pg_try_advisory_xact_lock(hashtextextended('ff_stream_frame ' || current_schema(), 0));
    v_scan refcursor;
begin
    open v_scan for
        select jsonb_build_array(f.execution_id, f.attempt_index, f.ts_ms, f.seq)::text from ff_stream_frame f
         where v_free and f.expires_at_ms <= v_now
         order by f.expires_at_ms;
    select s.* into processed, errors, more from ff__sweep('trim_streams', p_limit, v_scan, v_free) s;
end
$$;

comment on function ff_trim_streams(int) is
$$Deletes expired best_effort_live frames, oldest first, at most p_limit per call (up to 100000); more says whether to
call again. Readers do not see expired frames in any case.

Errors: invalid_input$$;
-- grant: ff_admin
