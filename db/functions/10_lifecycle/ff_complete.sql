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
    v_fence ff_fence := ff__decode_handle(p_handle);
    v_now bigint := ff__now_ms();
    c ff_execution;
    e ff_exec;
begin
    if p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    if octet_length(p_result) > 1024 then
        perform ff__check_size('max_execution_bytes', 'result', p_result);
    end if;
    outcome := 'completed';
    public_state := 'completed';
    replayed := false;
    -- ff__end for one execution that nothing hangs off, in one statement; ff__end takes twice the instructions for it.
    update ff_execution x set
        state = 'completed', due_at_ms = null, terminal_at_ms = greatest(v_now, x.last_mutation_at_ms),
        attempt_outcome = 'success', attempt_ended_at_ms = greatest(v_now, x.last_mutation_at_ms), result = p_result,
        result_encoding = p_result_encoding, release_op = 'complete',
        release_at_ms = greatest(v_now, x.last_mutation_at_ms), release_detail = null, release_lease_id = null,
        release_lease_epoch = null, attempt_timeout_at_ms = null,
        last_transition_at_ms = greatest(v_now, x.last_mutation_at_ms),
        last_mutation_at_ms = greatest(v_now, x.last_mutation_at_ms),
        last_event_ord = greatest(pg_current_xact_id()::text::bigint, x.last_event_ord)
     where x.execution_id = v_fence.execution_id
       and ff__fence_holds(x, v_now, v_fence.lease_id, v_fence.lease_epoch, v_fence.attempt_id, v_fence.attempt_index)
       and x.open_waitpoints = 0 and not x.stream_open and not x.limited and not x.granted and x.flow_id is null
    returning x.* into c;
    if found then
        if c.lease_expires_at_ms <= ff__now_ms() then
            -- It ended while this call waited for the row.
            perform ff__raise('lease_expired', format('the lease on execution %s expired', v_fence.wire_id),
                              jsonb_build_object('execution_id', v_fence.wire_id, 'reason', 'ttl',
                                                 'lease_expires_at_ms', c.lease_expires_at_ms));
        end if;
        terminal_at_ms := c.terminal_at_ms;
        perform ff__emit_event('completion', 'success', null, c.terminal_at_ms, c.last_event_ord, c.execution_id,
                               c.attempt_index, null, c.lane_id, c.namespace, c.tags, c.lease_id, c.lease_epoch, c.worker_id,
                               c.worker_instance_id, 'released', 'complete');
        return;
    end if;
    e := ff__fence(v_fence, 'complete');
    replayed := e.execution_id is null;
    if replayed then
        terminal_at_ms := (ff__recorded_release(v_fence, 'complete')).ended_at_ms;
    else
        terminal_at_ms := e.now_ms;
        perform ff__complete_one(e, 'complete', p_result, p_result_encoding);
    end if;
end
$$;

comment on function ff_complete(text, bytea, text) is
$$Ends an execution with success and stores its result on the attempt that produced it. Only the holder of the live lease
may; the same call again answers as the first did, with replayed = true.

Outcomes: outcome = completed
Errors: invalid_input, payload_too_large, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
