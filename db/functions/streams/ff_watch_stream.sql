-- Locks: the execution, unless the stream has its meta row already; then the meta row, which appends lock too: either
-- the append sees the watch, or the watcher's next read sees the frame. Resets the interval between two notifications,
-- because this watcher did not receive earlier ones.
create or replace function ff_watch_stream(
    p_execution_id text, p_attempt_index int, p_ttl_ms int default 60000, out channel text
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    e ff_exec;
begin
    perform ff__check_ttl('p_ttl_ms', p_ttl_ms);
    v_id := ff__stream_of(p_execution_id, p_attempt_index);
    channel := ff__stream_channel(v_id, p_attempt_index);
    if not exists (select from ff_stream_meta m where m.execution_id = v_id and m.attempt_index = p_attempt_index) then
        e := ff__open(v_id);
        if e.current_attempt_id is null or e.current_attempt_index <> p_attempt_index then
            -- The attempt has ended without a stream: there will be no notification.
            return;
        elsif not exists (select from ff_stream_meta m
                           where m.execution_id = v_id and m.attempt_index = p_attempt_index) then
            perform ff__open_stream(e);
        end if;
    end if;
    perform from ff_stream_meta m where m.execution_id = v_id and m.attempt_index = p_attempt_index for update;
    update ff_stream_meta m
       set watch_until_ms = greatest(m.watch_until_ms, ff__now_ms() + p_ttl_ms), notified_at_ms = null
     where m.execution_id = v_id and m.attempt_index = p_attempt_index and m.closed_at_ms is null;
end
$$;

comment on function ff_watch_stream(text, int, int) is
$$Requests notifications: for p_ttl_ms (up to 24 h) frames of this attempt's stream, and its close, notify the channel
that is returned, at most every 50 ms. LISTEN first, then watch, commit, and read; repeat before p_ttl_ms ends. A stream
without a watch sends no notifications. Notifications may be missed: read at least every second.

Errors: invalid_input, invalid_execution_id, execution_not_found, attempt_not_found$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
