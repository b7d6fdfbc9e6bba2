-- Locks: the execution. Replay with the same arguments by the fence that suspended, or with the same idempotency key by
-- it or by the live lease: the recorded rows, nothing written.
create or replace function ff_suspend(
    p_handle text,
    p_condition jsonb,
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
        select r.* from ff__suspend(ff__decode_handle(p_handle), p_condition, p_waitpoints, p_reason_code, p_timeout_ms,
                                    p_timeout_at_ms, p_timeout_behavior, p_policy, p_reason_detail, p_requested_by,
                                    p_continuation_pointer, p_suspension_id, p_idempotency_key) r;
end
$$;

comment on function ff_suspend(text, jsonb, jsonb, text, bigint, bigint, text, jsonb, text, text, text, uuid, text) is
$$Pauses the attempt until signals satisfy a condition, an operator resumes it, or it times out; p_timeout_behavior:
fail, cancel, expire, auto_resume_with_timeout_signal, escalate. The lease ends; the next claim after the resume
continues the same attempt. Returns one row per waitpoint, with the token that a sender needs to deliver a signal to it:
p_waitpoints names the waitpoints, or a new one is created for each key of the condition.
already_satisfied: the signals buffered by pending waitpoints satisfy the condition, the lease stays and the work
continues. already_resumed: this idempotency key was suspended and resumed before, the lease stays and the work
continues.
The same call repeated by the same fence returns the recorded answer (replayed), so repeated waits on one waitpoint that
stays open need separate idempotency keys. With other arguments the error is idempotency_conflict under the recorded
key, otherwise the error of an ended fence. No other fence gets a recorded answer, except that of the live lease under
the same key. A repetition returns no token for a waitpoint that is closed and whose key was wiped. Conditions and
policies: docs/suspension.md.

Outcomes: outcome = suspended | already_satisfied | already_resumed
Nullable: timeout_at_ms, waitpoint_token
Errors: invalid_input, invalid_handle, invalid_execution_id, invalid_reason_code, invalid_timeout
Errors: invalid_resume_condition, invalid_waitpoint_binding, invalid_resume_policy, idempotency_conflict
Errors: execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired, flow_cancelled
Errors: corrupt_state, hmac_not_initialized, waitpoint_not_found, invalid_waitpoint_for_execution
Errors: waitpoint_not_pending, pending_waitpoint_expired, suspension_conflict, waitpoint_conflict
Errors: waitpoint_limit_exceeded$$;
-- grant: ff_worker, ff_admin
