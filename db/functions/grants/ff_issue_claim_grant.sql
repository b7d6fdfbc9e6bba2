-- Locks: the execution, its quota policy. Repeated by the same worker: already_granted.
create or replace function ff_issue_claim_grant(
    p_execution_id text,
    p_worker_id text,
    p_worker_instance_id text,
    p_capabilities text[] default '{}',
    p_grant_ttl_ms bigint default 5000,
    p_admission_summary text default null,
    out outcome text,
    out grant_id uuid,
    out kind text,
    out lane_id text,
    out expires_at_ms bigint
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
    if p_admission_summary is not null then
        perform ff__check_text('p_admission_summary', p_admission_summary, 0, 4096);
    end if;
    e := ff__lock_execution(p_execution_id);
    perform ff__check_lane_claimable(e);
    perform ff__check_eligible(e);
    g := ff__find_own_grant(e, p_worker_id, p_worker_instance_id);
    outcome := case when g.grant_id is null then 'granted' else 'already_granted' end;
    if g.grant_id is null then
        perform ff__check_capable(e, v_capabilities);
        if e.limited then
            e.now_ms := ff__require_admission(e, p_grant_ttl_ms);
        end if;
        g := ff__write_grant(e, p_worker_id, p_worker_instance_id, v_capabilities, p_grant_ttl_ms, p_admission_summary);
    end if;
    grant_id := g.grant_id;
    kind := g.kind;
    lane_id := g.lane_id;
    expires_at_ms := g.expires_at_ms;
end
$$;

comment on function ff_issue_claim_grant(text, text, text, text[], bigint, text) is
$$Reserves one execution for one worker for p_grant_ttl_ms. Kind claim is redeemed with ff_claim_execution, kind resume
with ff_claim_resumed_execution, either with ff_claim_from_grant.

Outcomes: outcome = granted | already_granted
Outcomes: kind = claim | resume
Errors: invalid_input, invalid_execution_id, invalid_capabilities, execution_not_found, lane_not_claimable
Errors: invalid_lane_id, execution_not_eligible, grant_already_exists, capability_mismatch, budget_exceeded
Errors: rate_limit_exceeded, concurrency_limit_exceeded$$;
-- grant: ff_worker, ff_admin
