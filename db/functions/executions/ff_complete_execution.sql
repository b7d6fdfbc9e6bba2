-- Locks: the execution. Replay with the same fence: the recorded outcome, nothing written.
create or replace function ff_complete_execution(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_result bytea default null,
    p_result_encoding text default null,
    p_source text default 'lease_holder',
    out outcome text,
    out public_state text,
    out terminal_at_ms bigint,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v_override boolean := ff__is_override(p_execution_id, p_source, p_lease_id, p_lease_epoch, p_attempt_id);
    v_fence ff_fence := ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch,
                                                 p_attempt_id, v_override);
    e ff_exec;
begin
    if p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    if octet_length(p_result) > 1024 then
        perform ff__check_size('max_execution_bytes', 'result', p_result);
    end if;
    if v_override then
        e := ff__open_override(p_execution_id, p_attempt_index, 'complete');
    else
        e := ff__fence(v_fence, 'complete');
    end if;
    outcome := 'completed';
    public_state := 'completed';
    replayed := e.execution_id is null;
    if replayed then
        terminal_at_ms := (ff__recorded_release(v_fence, 'complete')).ended_at_ms;
    else
        terminal_at_ms := e.now_ms;
        perform ff__complete_one(e, case when v_override then 'override' else 'complete' end, p_result,
                                 p_result_encoding);
    end if;
end
$$;

comment on function ff_complete_execution(text, int, uuid, bigint, uuid, bytea, text, text) is
$$ff_complete with an explicit fence. p_source operator_override, without a fence, completes an active execution in
place of the lease holder; it requires membership in ff_operator or ff_admin, or ownership of the schema.

Outcomes: outcome = completed
Errors: invalid_input, override_not_allowed, payload_too_large, invalid_execution_id, fence_required, partial_fence
Errors: execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_operator, ff_admin
