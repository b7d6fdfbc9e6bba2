-- Executions that are limited left their leases (p_leased), or ended (p_ended): frees their slots and what was
-- reserved for them, and lets as many peers go per policy. A reservation under another policy than its own lasts
-- until the end.
create or replace function ff__free_slots(p_ids uuid[], p_now_ms bigint, p_leased boolean, p_ended boolean) returns void
language plpgsql volatile
as $$
declare
    r record;
begin
    for r in
        with freed as (
            delete from ff_quota_reservation v
             where v.execution_id = any (p_ids)
               and (p_ended or v.quota_policy_id = (select c.quota_policy_id from ff_execution c
                                                     where c.execution_id = v.execution_id))
            returning v.quota_policy_id, v.execution_id, v.expires_at_ms
        )
        select x.quota_policy_id, count(*)::int as slots
          from (select f.quota_policy_id, f.execution_id from freed f where f.expires_at_ms > p_now_ms
                 union
                select c.quota_policy_id, c.execution_id from ff_execution c
                 where c.execution_id = any (p_ids) and c.quota_policy_id is not null and p_leased) x
         group by x.quota_policy_id
    loop
        perform ff__let_peers_go(r.quota_policy_id, r.slots);
    end loop;
end
$$;

-- ff__free_slots for one execution; e is the row as it was.
create or replace function ff__free_slot(e ff_exec, p_ended boolean) returns void
language plpgsql volatile
as $$
begin
    perform ff__free_slots(array[e.execution_id], e.now_ms, e.ownership_state = 'leased', p_ended);
end
$$;
