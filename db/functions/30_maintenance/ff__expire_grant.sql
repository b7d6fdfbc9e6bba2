-- Deletes the grant of a locked execution if its time is over, with the quota slot it held; whether it was so. Whoever
-- found nothing to claim while it was reserved is woken.
create or replace function ff__expire_grant(e ff_exec) returns boolean
language plpgsql volatile
as $$
declare
    v_ready boolean;
begin
    delete from ff_claim_grant g where g.execution_id = e.execution_id and g.expires_at_ms <= e.now_ms;
    if not found then
        return false;
    end if;
    delete from ff_quota_reservation q
     where (q.quota_policy_id, q.execution_id) in (
           select x.quota_policy_id, x.execution_id from ff_quota_reservation x
            where x.execution_id = e.execution_id and x.expires_at_ms <= e.now_ms for update skip locked);
    update ff_exec_core c set reserved_until_ms = null, last_mutation_at_ms = e.now_ms
     where c.execution_id = e.execution_id
    returning c.blocking_reason = 'waiting_for_worker' into v_ready;
    if v_ready then
        perform ff__wake_lane(e.lane_id, e.execution_id);
    end if;
    return true;
end
$$;
