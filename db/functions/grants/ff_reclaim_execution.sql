-- Locks: the execution, its quota policy. Not replayable: the grant is used up.
create or replace function ff_reclaim_execution(
    p_execution_id text,
    p_grant_id uuid,
    p_worker_id text,
    p_worker_instance_id text,
    p_lease_ttl_ms bigint default 30000,
    p_max_reclaim_count int default null
) returns table (
    outcome text,
    reclaim_count int,
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
    v ff_reclaim_row;
    r ff_claim_row;
begin
    v := ff__reclaim(p_execution_id, p_grant_id, p_worker_id, p_worker_instance_id, p_lease_ttl_ms,
                     p_max_reclaim_count);
    r := v.claim;
    return query select v.outcome, v.reclaim_count, r.*;
end
$$;

comment on function ff_reclaim_execution(text, uuid, text, text, bigint, int) is
$$Takes over a crashed execution under a grant of kind reclaim: the interrupted attempt ends, a new one starts. At the
cap of the policy, or at p_max_reclaim_count if that is lower, the execution ends failed instead.

Rows: exactly one
Outcomes: outcome = claimed | not_reclaimable | reclaim_cap_exceeded | grant_not_found
Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: handle, handle_kind, execution_id, namespace, lane_id, flow_id, execution_kind, payload, payload_encoding
Nullable: tags, priority, attempt_index, attempt_id, attempt_type, lease_id, lease_epoch, lease_expires_at_ms
Nullable: attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_execution_id, execution_not_found, invalid_claim_grant, lane_not_claimable
Errors: invalid_lane_id, budget_exceeded, rate_limit_exceeded, concurrency_limit_exceeded$$;
-- grant: ff_worker, ff_admin
