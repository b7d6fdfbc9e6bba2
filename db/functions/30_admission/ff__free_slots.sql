-- ff__free_slot for many executions that have just completed under their leases: lets as many peers go per policy.
create or replace function ff__free_slots(p_ids uuid[], p_now_ms bigint) returns void
language plpgsql volatile
as $$
declare
    r record;
begin
    for r in
        with freed as (
            delete from ff_quota_reservation v where v.execution_id = any (p_ids)
            returning v.quota_policy_id, v.expires_at_ms
        )
        select x.quota_policy_id, count(*)::int as slots
          from (select f.quota_policy_id from freed f where f.expires_at_ms > p_now_ms
                 union all
                select c.quota_policy_id from ff_exec_core c
                 where c.execution_id = any (p_ids) and c.quota_policy_id is not null) x
         group by x.quota_policy_id
    loop
        perform ff__let_peers_go(r.quota_policy_id, r.slots);
    end loop;
end
$$;
