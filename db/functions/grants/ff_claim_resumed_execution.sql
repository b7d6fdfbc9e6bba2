-- Locks: the execution; its quota policy without waiting. Not replayable: the grant is used up.
create or replace function ff_claim_resumed_execution(
    p_execution_id text,
    p_grant_id uuid,
    p_worker_id text,
    p_worker_instance_id text,
    p_lease_ttl_ms bigint default 30000
) returns table (
    handle text,
    handle_kind text,
    execution_id text,
    namespace text,
    lane_id text,
    flow_id uuid,
    execution_kind text,
    payload bytea,
    payload_encoding text,
    tags jsonb,
    priority int,
    attempt_index int,
    attempt_id uuid,
    attempt_type text,
    lease_id uuid,
    lease_epoch bigint,
    lease_expires_at_ms bigint,
    attempt_timeout_at_ms bigint,
    deadline_at_ms bigint
)
language plpgsql volatile security definer rows 1
as $$
declare
    r ff_claim_row := ff__redeem_grant(p_execution_id, p_grant_id, p_worker_id, p_worker_instance_id, p_lease_ttl_ms,
                                       'resume');
begin
    return query select r.*;
end
$$;

comment on function ff_claim_resumed_execution(text, uuid, text, text, bigint) is
$$Resumes the paused attempt of one execution: same attempt, new lease. With p_grant_id the call redeems a grant of kind
resume. With NULL it needs no grant as long as no other worker holds a live one; a grant of the caller is used up.

Rows: exactly one
Nullable: p_grant_id
Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: flow_id, payload, payload_encoding, attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_not_leaseable, not_a_resumed_execution
Errors: execution_not_eligible, lane_not_claimable, invalid_lane_id, invalid_claim_grant, claim_grant_expired
Errors: grant_already_exists, budget_exceeded, rate_limit_exceeded, concurrency_limit_exceeded$$;
-- grant: ff_worker, ff_admin
