-- Locks: the frames it deletes (skip locked). Never waits.
create or replace function ff_trim_streams(p_limit int default 1000, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
    v_now bigint := ff_now_ms();
begin
    perform ff__check_limit(p_limit, 100000);
    with expired as materialized (
        select f.execution_id, f.attempt_index, f.ts_ms, f.seq from ff_stream_frame f
         where f.expires_at_ms <= v_now
         order by f.expires_at_ms limit p_limit for update skip locked)
    delete from ff_stream_frame f using expired x
     where f.execution_id = x.execution_id and f.attempt_index = x.attempt_index and f.ts_ms = x.ts_ms and f.seq = x.seq;
    get diagnostics processed = row_count;
    errors := 0;
    more := processed = p_limit and p_limit > 0;
end
$$;

comment on function ff_trim_streams(int) is
$$Deletes best_effort_live frames whose time is over, oldest first, at most p_limit per call (up to 100000); more says
whether to call again. Readers do not see them either way.

Errors: invalid_input$$;
