-- Locks: the execution. Replay with the same handle: the recorded outcome, nothing written.
create or replace function ff_complete(
    p_handle text,
    p_result bytea default null,
    p_result_encoding text default null,
    out outcome text,
    out public_state text,
    out terminal_at_ms bigint,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    if p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    if octet_length(p_result) > 1024 then
        perform ff__check_size('max_execution_bytes', 'result', p_result);
    end if;
    e := ff__fence_handle(p_handle, 'complete');
    outcome := 'completed';
    public_state := 'completed';
    replayed := e.execution_id is null;
    if replayed then
        terminal_at_ms := (ff__recorded_release(ff__decode_handle(p_handle), 'complete')).ended_at_ms;
    else
        terminal_at_ms := e.now_ms;
        e := ff__complete(e, 'complete', p_result, p_result_encoding);
    end if;
end
$$;

comment on function ff_complete(text, bytea, text) is
$$Ends an execution with success and stores its result on the attempt that produced it. Only the holder of the live lease
may; the same call again answers as the first did, with replayed = true.

Outcomes: outcome = completed
Errors: invalid_input, payload_too_large, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
