-- Turns a grant of kind claim or resume into a lease. The instance may differ from the grant's: a restarted process.
-- p_grant_id NULL is for kind resume alone: no grant is needed unless another worker holds a live one.
create or replace function ff__redeem(
    p_execution_id text, p_grant_id uuid, p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint, p_kind text
) returns ff_claim_row
language plpgsql volatile
as $$
declare
    e ff_exec;
    g ff_claim_grant;
    r ff_claim_row;
begin
    perform ff__check_claimant(p_worker_id, p_worker_instance_id, 'p_lease_ttl_ms', p_lease_ttl_ms);
    if p_grant_id is null and p_kind <> 'resume' then
        perform ff__invalid('p_grant_id', 'must not be null');
    end if;
    e := ff__lock_execution(p_execution_id);
    if p_kind = 'resume' and e.attempt_state <> 'attempt_interrupted' then
        perform ff__raise('not_a_resumed_execution', 'the execution has no paused attempt',
                          jsonb_build_object('execution_id', p_execution_id));
    elsif e.lifecycle_phase <> 'runnable' then
        perform ff__not_leaseable(e);
    elsif p_kind = 'claim' and e.attempt_state = 'attempt_interrupted' then
        perform ff__raise('use_claim_resumed_execution', 'the execution goes on with a paused attempt',
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    perform ff__check_eligible(e);
    perform ff__check_lane_claimable(e);
    select x.* into g from ff_claim_grant x where x.execution_id = e.execution_id;
    if p_grant_id is null then
        if g.worker_id <> p_worker_id then
            perform ff__own_grant(e, p_worker_id, p_worker_instance_id);
        end if;
    elsif not found or g.grant_id <> p_grant_id or g.kind <> p_kind or g.worker_id <> p_worker_id then
        perform ff__bad_grant(p_execution_id);
    elsif g.expires_at_ms <= e.now_ms then
        perform ff__raise('claim_grant_expired', 'the grant has expired',
                          jsonb_build_object('execution_id', p_execution_id, 'expires_at_ms', g.expires_at_ms));
    end if;
    if e.limited then
        e.now_ms := ff__require_admission(e, null);
    end if;
    select x.* into r from ff__lease(array[e.execution_id], p_worker_id, p_worker_instance_id, p_lease_ttl_ms, e.now_ms) x;
    return r;
end
$$;
