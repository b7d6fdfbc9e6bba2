-- Locks: the execution. Replay with the same fence: the recorded outcome, nothing written.
create or replace function ff_fail(
    p_handle text,
    p_reason text default '',
    p_classification text default 'transient',
    p_category text default null,
    p_retry_after_ms bigint default null,
    out outcome text,
    out public_state text,
    out delay_until_ms bigint,
    out next_attempt_index int,
    out retry_count int,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v jsonb;
begin
    v := ff__fail_verb(ff__decode_handle(p_handle), p_reason, p_classification, p_category, p_retry_after_ms);
    outcome := v ->> 'outcome';
    public_state := v ->> 'public_state';
    delay_until_ms := (v ->> 'delay_until_ms')::bigint;
    next_attempt_index := (v ->> 'next_attempt_index')::int;
    retry_count := (v ->> 'retry_count')::int;
    replayed := (v ->> 'replayed')::boolean;
end
$$;

comment on function ff_fail(text, text, text, text, bigint) is
$$Ends the attempt as failed. The execution is retried if the stored policy allows it: not for classification permanent
or cancelled, only for retryable_categories if the policy names some, and while retries are left. The retry becomes
claimable at delay_until_ms, or at once. Otherwise the execution ends failed. p_reason is cut at 4096 characters.
p_classification: transient, permanent, infra_crash, timeout, cancelled; p_category defaults to it.
p_retry_after_ms (0 to 30 days): delay of the retry instead of the policy's backoff, as in HTTP Retry-After. It does not
add retries, and is ignored if there is none.

Outcomes: outcome = retry_scheduled | terminal_failed
Nullable: delay_until_ms, next_attempt_index
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
