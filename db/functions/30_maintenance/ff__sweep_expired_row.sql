-- Deletes one row for ff_sweep_expired; whether it was there, past its time and not locked. p_key: the letter of its
-- table and a json array of its primary key. A reservation is deleted under the lock of its execution, as everywhere.
create or replace function ff__sweep_expired_row(p_key text, p_now_ms bigint) returns boolean
language plpgsql volatile
as $$
declare
    k jsonb := substr(p_key, 2)::jsonb;
begin
    case left(p_key, 1)
        when 'i' then
            delete from ff_idempotency i
             where i.ctid = (select x.ctid from ff_idempotency x
                              where x.namespace = k ->> 0 and x.idempotency_key = k ->> 1
                                and x.expires_at_ms <= p_now_ms for update skip locked);
        when 'd' then
            delete from ff_budget_usage_dedup d
             where d.ctid = (select x.ctid from ff_budget_usage_dedup x
                              where x.budget_id = k ->> 0 and x.dedup_key = k ->> 1
                                and x.expires_at_ms <= p_now_ms for update skip locked);
        when 'r' then
            perform from ff_exec_core c where c.execution_id = (k ->> 1)::uuid for update skip locked;
            if not found and exists (select from ff_exec_core c where c.execution_id = (k ->> 1)::uuid) then
                return false;
            end if;
            delete from ff_quota_reservation q
             where q.ctid = (select x.ctid from ff_quota_reservation x
                              where x.quota_policy_id = k ->> 0 and x.execution_id = (k ->> 1)::uuid
                                and x.expires_at_ms <= p_now_ms for update skip locked);
        when 'w' then
            delete from ff_quota_window w
             where w.ctid = (select x.ctid from ff_quota_window x join ff_quota_policy p using (quota_policy_id)
                              where x.quota_policy_id = k ->> 0 and x.execution_id = (k ->> 1)::uuid
                                and x.attempt_index = (k ->> 2)::int
                                and x.admitted_at_ms <= p_now_ms - p.window_seconds * 1000 for update of x skip locked);
        when 'e' then
            -- Written by one transaction at a time.
            delete from ff_reconciler_error e
             where e.name = k ->> 0 and e.row_key = k ->> 1 and e.next_retry_at_ms <= p_now_ms - 3600000
               and ff__sweep_guard(e.name);
    end case;
    return found;
end
$$;
