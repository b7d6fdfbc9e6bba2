-- Closes the stream of the current attempt, once, and wakes whoever watches it. Under the execution's lock; locks the
-- stream's meta row. No stream, or a closed one: nothing happens.
create or replace function ff__close_stream(e ff_exec, p_reason text) returns void
language plpgsql volatile
as $$
declare
    v_watch_until_ms bigint;
begin
    update ff_stream_meta m set closed_at_ms = e.now_ms, closed_reason = p_reason
     where m.execution_id = e.execution_id and m.attempt_index = e.current_attempt_index and m.closed_at_ms is null
    returning m.watch_until_ms into v_watch_until_ms;
    if v_watch_until_ms > e.now_ms then
        perform ff__ring_stream(e.execution_id, e.current_attempt_index);
    end if;
    update ff_execution c set stream_open = false where c.execution_id = e.execution_id and c.stream_open;
end
$$;
