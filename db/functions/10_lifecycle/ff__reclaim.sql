-- Turns a grant of kind reclaim into a lease on crashed work. Columns as ff_reclaim_execution; claim is NULL unless
-- outcome is claimed.
create or replace function ff__reclaim(
    p_execution_id text,
    p_grant_id uuid,
    p_worker_id text,
    p_worker_instance_id text,
    p_lease_ttl_ms bigint,
    p_max_reclaim_count int
) returns ff_reclaim_row
language plpgsql volatile
as $$
declare
    v ff_reclaim_row;
    e ff_exec;
    g ff_claim_grant;
    r ff_claim_row;
begin
    perform ff__check_claimant(p_worker_id, p_worker_instance_id, 'p_lease_ttl_ms', p_lease_ttl_ms);
    if p_grant_id is null then
        perform ff__invalid('p_grant_id', 'must not be null');
    elsif p_max_reclaim_count < 0 then
        perform ff__invalid('p_max_reclaim_count', 'must be 0 or more');
    end if;
    e := ff__lock_execution(p_execution_id);
    v.reclaim_count := e.lease_reclaim_count;
    select x.* into g from ff_claim_grant x where x.execution_id = e.execution_id;
    if not found or g.grant_id <> p_grant_id or g.kind <> 'reclaim' or g.expires_at_ms <= e.now_ms then
        v.outcome := 'grant_not_found';
        return v;
    elsif g.worker_id <> p_worker_id then
        perform ff__bad_grant(p_execution_id);
    end if;
    perform ff__check_lane_claimable(e);
    if not ff__reclaimable(e) or e.flow_id is not null and not ff__flow_claimable(e.flow_id) then
        if e.limited then
            perform ff__free_slot(e, false);
        end if;
        perform ff__ungrant(e.execution_id);
        v.outcome := 'not_reclaimable';
    elsif ff__expire_if_due(e) then
        v.outcome := 'not_reclaimable';
    elsif e.lease_reclaim_count >= least(ff__max_reclaims(e.execution_id), p_max_reclaim_count) then
        perform ff__give_up_reclaims(e);
        v.outcome := 'reclaim_cap_exceeded';
    else
        if e.limited then
            e.now_ms := ff__require_admission(e, null);
        end if;
        v.reclaim_count := e.lease_reclaim_count + 1;
        select x.* into r from ff__lease(array[e.execution_id], p_worker_id, p_worker_instance_id, p_lease_ttl_ms, e.now_ms) x;
        v.claim := r;
        v.outcome := 'claimed';
    end if;
    return v;
end
$$;
