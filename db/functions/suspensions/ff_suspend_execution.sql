-- Locks: the execution. Replay with the same arguments by the fence that suspended, or with the same idempotency key by
-- it or by the live lease: the recorded rows, nothing written.
create or replace function ff_suspend_execution(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_condition jsonb default null,
    p_waitpoints jsonb default null,
    p_reason_code text default 'waiting_for_signal',
    p_timeout_ms bigint default null,
    p_timeout_at_ms bigint default null,
    p_timeout_behavior text default null,
    p_policy jsonb default '{}',
    p_reason_detail text default null,
    p_requested_by text default 'worker',
    p_continuation_pointer text default null,
    p_suspension_id uuid default null,
    p_idempotency_key text default null
) returns table (
    outcome text, replayed boolean, suspension_id uuid, ordinal int, waitpoint_id uuid, waitpoint_key text,
    waitpoint_token text, timeout_at_ms bigint, handle text
)
language plpgsql volatile security definer
as $$
begin
    return query
        select r.* from ff__suspend(ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id,
                                                             p_lease_epoch, p_attempt_id),
                                    p_condition, p_waitpoints, p_reason_code, p_timeout_ms,
                                    p_timeout_at_ms, p_timeout_behavior, p_policy, p_reason_detail, p_requested_by,
                                    p_continuation_pointer, p_suspension_id, p_idempotency_key) r;
end
$$;

comment on function ff_suspend_execution(
    text, int, uuid, bigint, uuid, jsonb, jsonb, text, bigint, bigint, text, jsonb, text, text, text, uuid, text
) is
$$ff_suspend by explicit fence. p_condition must be given.

Outcomes: outcome = suspended | already_satisfied | already_resumed
Nullable: timeout_at_ms, waitpoint_token
Errors: invalid_input, fence_required, partial_fence, invalid_execution_id, invalid_reason_code, invalid_timeout
Errors: invalid_resume_condition, invalid_waitpoint_binding, invalid_resume_policy, idempotency_conflict
Errors: execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired, flow_cancelled
Errors: corrupt_state, hmac_not_initialized, waitpoint_not_found, invalid_waitpoint_for_execution
Errors: waitpoint_not_pending, pending_waitpoint_expired, suspension_conflict, waitpoint_conflict
Errors: waitpoint_limit_exceeded$$;
-- grant: ff_worker, ff_admin
