-- Frames of one stream from p_from to p_to, both included, by their ids; expired ones are gone.
create or replace function ff__read_frames(
    p_execution_id uuid, p_attempt_index int, p_from ff_frame_id, p_to ff_frame_id, p_limit int, p_visibility text
) returns setof ff_stream_frame
language plpgsql stable
as $$
declare
    v_now bigint := ff__now_ms();
begin
    return query
        select f.* from ff_stream_frame f
         where f.execution_id = p_execution_id and f.attempt_index = p_attempt_index
           and (f.ts_ms, f.seq) >= (p_from.ts_ms, p_from.seq) and (f.ts_ms, f.seq) <= (p_to.ts_ms, p_to.seq)
           and (f.expires_at_ms is null or f.expires_at_ms > v_now)
           and (p_visibility = 'all' or f.mode <> 'best_effort_live')
         order by f.ts_ms, f.seq limit p_limit;
end
$$;
