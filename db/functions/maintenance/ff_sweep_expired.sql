-- Locks: the executions of reservations, and the rows it deletes, without waiting. Safe to run concurrently.
create or replace function ff_sweep_expired(
    p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    -- Kind by kind: one order over all kinds would sort all due rows. Keys: see ff__sweep_expired_row.
    open v_scan for
        select 'e' || jsonb_build_array(e.name, e.row_key)::text
          from ff_reconciler n join ff_reconciler_error e on e.name = n.name
         where e.next_retry_at_ms <= v_now - 3600000
        union all
        (select 'r' || jsonb_build_array(q.quota_policy_id, q.execution_id)::text from ff_quota_reservation q
          where q.expires_at_ms <= v_now order by q.expires_at_ms)
        union all
        select w.key
          from ff_quota_policy p
         cross join lateral (
               select 'w' || jsonb_build_array(x.quota_policy_id, x.execution_id, x.attempt_index)::text as key
                 from ff_quota_window x
                where x.quota_policy_id = p.quota_policy_id and x.admitted_at_ms <= v_now - p.window_seconds * 1000
                order by x.admitted_at_ms) w
        union all
        (select 'd' || jsonb_build_array(d.budget_id, d.dedup_key)::text from ff_budget_usage_dedup d
          where d.expires_at_ms <= v_now order by d.expires_at_ms)
        union all
        (select 'i' || jsonb_build_array(i.namespace, i.idempotency_key)::text from ff_idempotency i
          where i.expires_at_ms <= v_now order by i.expires_at_ms);
    select s.* into processed, errors, more from ff__sweep('sweep_expired', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_expired(int) is
$$Deletes expired rows: idempotency keys, keys of usage reports, admissions that left their quota window, unused quota
slots, and errors of failed rows that no step has retried for an hour. The oldest of each kind first, at most p_limit.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
