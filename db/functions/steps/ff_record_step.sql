-- Locks: the execution. Order of checks: arguments, handle, fence, conflict, limit. Replay: the same lease with the
-- same name and result gets already_recorded; a later lease gets the result recorded by an earlier one, whatever it
-- passes.
create or replace function ff_record_step(
    p_handle text,
    p_name text,
    p_result bytea default null,
    p_result_encoding text default null,
    out outcome text,
    out name text,
    out result bytea,
    out result_encoding text,
    out attempt_index int,
    out recorded_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_limit int;
    v_wire text;
    v_ordinal int;
    e ff_exec;
    s ff_step;
begin
    perform ff__check_text('p_name', p_name, 1, 512);
    if p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    if p_result is not null then
        perform ff__check_size('max_step_result_bytes', 'result', p_result);
    end if;
    e := ff__fence(ff__decode_handle(p_handle));

    select x.* into s from ff_step x where x.execution_id = e.execution_id and x.name = p_name;
    if found then
        if s.lease_epoch = e.lease_epoch
           and (s.result, s.result_encoding) is distinct from (p_result, p_result_encoding)
        then
            v_wire := ff__wire_id(e.partition_key, e.execution_id);
            perform ff__raise('step_conflict',
                              format('this lease has recorded another result for step %s of execution %s', p_name,
                                     v_wire),
                              jsonb_build_object('execution_id', v_wire, 'name', p_name,
                                                 'attempt_index', s.attempt_index, 'recorded_at_ms', s.recorded_at_ms));
        end if;
        outcome := 'already_recorded';
        name := s.name;
        result := s.result;
        result_encoding := s.result_encoding;
        attempt_index := s.attempt_index;
        recorded_at_ms := s.recorded_at_ms;
        return;
    end if;

    select coalesce(max(x.ordinal), 0) + 1 into v_ordinal from ff_step x where x.execution_id = e.execution_id;
    v_limit := ff__engine_limit('max_steps_per_execution');
    if v_ordinal > v_limit then
        v_wire := ff__wire_id(e.partition_key, e.execution_id);
        perform ff__raise('step_limit_exceeded', format('execution %s has recorded %s steps', v_wire, v_limit),
                          jsonb_build_object('execution_id', v_wire, 'limit', v_limit));
    end if;
    -- A row not visible in the caller's snapshot raises a serialization failure here, not a unique violation.
    insert into ff_step (
        execution_id, lease_epoch, recorded_at_ms, ordinal, attempt_index, name, result_encoding, result)
    values (e.execution_id, e.lease_epoch, e.now_ms, v_ordinal, e.current_attempt_index, p_name, p_result_encoding,
            p_result)
    on conflict do nothing;
    outcome := 'recorded';
    name := p_name;
    result := p_result;
    result_encoding := p_result_encoding;
    attempt_index := e.current_attempt_index;
    recorded_at_ms := e.now_ms;
end
$$;

comment on function ff_record_step(text, text, bytea, text) is
$$Records the result of a step under a name, for the execution of the handle. The worker that continues after a crash, a
retry, a pause or a replay reads it with ff_read_steps and does not run the step again. The first record of a name is
kept: already_recorded returns the stored result, which the caller must use, and the attempt that stored it. If the same
lease records a name with another result, the call is rejected: two steps have the same name.

Outcomes: outcome = recorded | already_recorded
Nullable: result, result_encoding
Errors: invalid_input, payload_too_large, invalid_handle, invalid_execution_id, execution_not_found
Errors: execution_not_active, stale_lease, lease_revoked, lease_expired, step_conflict, step_limit_exceeded$$;
-- grant: ff_worker, ff_admin
