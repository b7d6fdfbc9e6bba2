-- Locks: the execution, its quota policy. Repeated by the same worker: already_granted.
create or replace function ff_issue_reclaim_grant(
    p_execution_id text,
    p_worker_id text,
    p_worker_instance_id text,
    p_capabilities text[] default '{}',
    p_grant_ttl_ms bigint default 5000,
    out outcome text,
    out grant_id uuid,
    out lane_id text,
    out expires_at_ms bigint,
    out reclaim_count int,
    out detail text
)
language plpgsql volatile security definer
as $$
declare
    v_capabilities text[];
    e ff_exec;
    g ff_claim_grant;
begin
    perform ff__check_claimant(p_worker_id, p_worker_instance_id, 'p_grant_ttl_ms', p_grant_ttl_ms);
    v_capabilities := ff__check_capabilities('p_capabilities', p_capabilities);
    e := ff__lock_execution(p_execution_id);
    reclaim_count := e.lease_reclaim_count;
    lane_id := e.lane_id;
    if not ff__reclaimable(e) then
        outcome := 'not_reclaimable';
        detail := case when e.lifecycle_phase = 'active' then 'lease_live' else e.public_state end;
        return;
    elsif e.flow_id is not null and not ff__flow_claimable(e.flow_id) then
        outcome := 'not_reclaimable';
        detail := 'flow_not_claimable';
        return;
    elsif ff__expire_if_due(e) then
        outcome := 'not_reclaimable';
        detail := case when e.deadline_at_ms <= e.now_ms then 'execution_deadline' else 'attempt_timeout' end;
        return;
    elsif e.lease_reclaim_count >= ff__max_reclaims(e.execution_id) then
        perform ff__fail_exhausted_reclaims(e);
        outcome := 'reclaim_cap_exceeded';
        detail := 'max_reclaims_exceeded';
        return;
    end if;
    perform ff__check_lane_claimable(e);
    g := ff__find_own_grant(e, p_worker_id, p_worker_instance_id);
    outcome := case when g.grant_id is null then 'granted' else 'already_granted' end;
    if g.grant_id is null then
        perform ff__check_capable(e, v_capabilities);
        if e.limited then
            e.now_ms := ff__require_admission(e, p_grant_ttl_ms);
        end if;
        g := ff__write_grant(e, p_worker_id, p_worker_instance_id, v_capabilities, p_grant_ttl_ms);
    end if;
    grant_id := g.grant_id;
    expires_at_ms := g.expires_at_ms;
end
$$;

comment on function ff_issue_reclaim_grant(text, text, text, text[], bigint) is
$$Reserves a crashed execution for a worker, to be redeemed with ff_reclaim_execution. An execution whose deadline or
attempt timeout has passed, or that has reached its limit of reclaims, is ended instead. detail: why there is no grant.

Outcomes: outcome = granted | already_granted | not_reclaimable | reclaim_cap_exceeded
Nullable: grant_id, expires_at_ms, detail
Errors: invalid_input, invalid_execution_id, invalid_capabilities, execution_not_found, lane_not_claimable
Errors: invalid_lane_id, grant_already_exists, capability_mismatch, budget_exceeded, rate_limit_exceeded
Errors: concurrency_limit_exceeded$$;
-- grant: ff_worker, ff_admin
