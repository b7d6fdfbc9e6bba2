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
    v_now bigint := ff__now_ms();
    v_fence ff_fence;
    v_ord bigint;
    v_id uuid;
    v_index int;
    v_lane text;
    v_namespace text;
    v_tags jsonb;
    v_lease uuid;
    v_epoch bigint;
    v_worker text;
    v_instance text;
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
    begin
        v_id := ff__handle_id(p_handle);
    exception when data_exception then
        v_id := null;
    end;
    -- Fast path: does the work of ff__end in one statement for an execution without open resources, with half the
    -- instructions. A row locked by another transaction is left to ff__fence, which reads the time after it has the
    -- lock.
    update ff_execution x set
        state = 'completed', due_at_ms = null, terminal_at_ms = v_now,
        attempt_outcome = 'success', attempt_ended_at_ms = v_now, result = p_result,
        result_encoding = p_result_encoding, release_op = 'complete',
        release_at_ms = v_now, release_detail = null, release_lease_id = null,
        release_lease_epoch = null, attempt_timeout_at_ms = null,
        last_transition_at_ms = v_now,
        last_mutation_at_ms = v_now,
        last_event_ord = greatest(pg_current_xact_id()::text::bigint, x.last_event_ord)
     where x.ctid = (select y.ctid from ff_execution y where y.execution_id = v_id for no key update skip locked)
       and ff__fence_holds(x, v_now, p_handle) and x.last_mutation_at_ms <= v_now
       and x.open_waitpoints = 0 and not x.stream_open and not x.limited and not x.granted and x.flow_id is null
    returning x.last_event_ord, x.attempt_index, x.lane_id, x.namespace, x.tags,
              x.lease_id, x.lease_epoch, x.worker_id, x.worker_instance_id
      into v_ord, v_index, v_lane, v_namespace, v_tags, v_lease, v_epoch, v_worker, v_instance;
    if found then
        terminal_at_ms := v_now;
        perform ff__emit_event('completion', 'success', null, terminal_at_ms, v_ord, v_id, v_index, null, v_lane,
                               v_namespace, v_tags, v_lease, v_epoch, v_worker, v_instance, 'released', 'complete');
        return;
    end if;
    v_fence := ff__decode_handle(p_handle);
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
$$Ends an execution with success and stores the result on the attempt that produced it. Only the holder of the live
lease may call it. A repeated call returns the same result, with replayed = true.

Outcomes: outcome = completed
Errors: invalid_input, payload_too_large, invalid_handle, invalid_execution_id, execution_not_found
Errors: execution_not_active, stale_lease, lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
