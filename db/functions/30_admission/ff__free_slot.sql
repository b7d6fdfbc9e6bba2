-- An execution that is limited left its lease, or ended (p_ended): frees its slot, and what was reserved for it, and
-- lets a peer go. e is the row as it was.
create or replace function ff__free_slot(e ff_exec, p_ended boolean) returns void
language plpgsql volatile
as $$
declare
    v_policy text;
begin
    for v_policy in
        with freed as (
            delete from ff_quota_reservation r
             where r.execution_id = e.execution_id
               and (p_ended or r.quota_policy_id = (select c.quota_policy_id from ff_exec_core c
                                                     where c.execution_id = e.execution_id))
            returning r.quota_policy_id, r.expires_at_ms
        )
        select f.quota_policy_id from freed f where f.expires_at_ms > e.now_ms
        union
        select c.quota_policy_id from ff_exec_core c
         where c.execution_id = e.execution_id and c.quota_policy_id is not null and e.ownership_state = 'leased'
    loop
        perform ff__let_peers_go(v_policy, 1);
    end loop;
end
$$;
