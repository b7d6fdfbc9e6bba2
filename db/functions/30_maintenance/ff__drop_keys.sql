-- The deletions of ff_sweep_expired, by the keys that it found: looked at again under their locks, and those of their
-- executions if they are slots; busy ones left.
-- Returns how many were deleted.
create or replace function ff__drop_keys(p_keys text[], p_now_ms bigint) returns int
language plpgsql volatile
as $$
declare
    v_gone int := 0;
    v_some int;
    v_name text;
begin
    with k as materialized (
        select substr(x.key, 2)::jsonb ->> 0 as a, substr(x.key, 2)::jsonb ->> 1 as b
          from unnest(p_keys) x(key) where left(x.key, 1) = 'i'),
    locked as materialized (
        select l.namespace, l.idempotency_key
          from k cross join lateral (
               select i.namespace, i.idempotency_key from ff_idempotency i
                where i.namespace = k.a and i.idempotency_key = k.b and i.expires_at_ms <= p_now_ms
                  for update skip locked) l)
    delete from ff_idempotency i using locked l
     where i.namespace = l.namespace and i.idempotency_key = l.idempotency_key;
    get diagnostics v_some = row_count;
    v_gone := v_gone + v_some;

    with k as materialized (
        select substr(x.key, 2)::jsonb ->> 0 as a, substr(x.key, 2)::jsonb ->> 1 as b
          from unnest(p_keys) x(key) where left(x.key, 1) = 'd'),
    locked as materialized (
        select l.budget_id, l.dedup_key
          from k cross join lateral (
               select d.budget_id, d.dedup_key from ff_budget_usage_dedup d
                where d.budget_id = k.a and d.dedup_key = k.b and d.expires_at_ms <= p_now_ms
                  for update skip locked) l)
    delete from ff_budget_usage_dedup d using locked l
     where d.budget_id = l.budget_id and d.dedup_key = l.dedup_key;
    get diagnostics v_some = row_count;
    v_gone := v_gone + v_some;

    with k as materialized (
        select substr(x.key, 2)::jsonb ->> 0 as a, (substr(x.key, 2)::jsonb ->> 1)::uuid as b
          from unnest(p_keys) x(key) where left(x.key, 1) = 'r'),
    -- Under the lock of the execution, if there is one, as everywhere: whoever ends it drops its slots too.
    free as materialized (
        select k.a, k.b
          from k left join lateral (
               select c.execution_id from ff_exec_core c where c.execution_id = k.b for update skip locked) c on true
         where c.execution_id is not null or not exists (select from ff_exec_core x where x.execution_id = k.b)),
    locked as materialized (
        select l.quota_policy_id, l.execution_id
          from free k cross join lateral (
               select q.quota_policy_id, q.execution_id from ff_quota_reservation q
                where q.quota_policy_id = k.a and q.execution_id = k.b and q.expires_at_ms <= p_now_ms
                  for update skip locked) l)
    delete from ff_quota_reservation q using locked l
     where q.quota_policy_id = l.quota_policy_id and q.execution_id = l.execution_id;
    get diagnostics v_some = row_count;
    v_gone := v_gone + v_some;

    with k as materialized (
        select substr(x.key, 2)::jsonb ->> 0 as a, (substr(x.key, 2)::jsonb ->> 1)::uuid as b,
               (substr(x.key, 2)::jsonb ->> 2)::int as c
          from unnest(p_keys) x(key) where left(x.key, 1) = 'w'),
    locked as materialized (
        select l.quota_policy_id, l.execution_id, l.attempt_index
          from k cross join lateral (
               select w.quota_policy_id, w.execution_id, w.attempt_index from ff_quota_window w
                where w.quota_policy_id = k.a and w.execution_id = k.b and w.attempt_index = k.c
                  and w.admitted_at_ms <= p_now_ms - (select p.window_seconds * 1000 from ff_quota_policy p
                                                       where p.quota_policy_id = k.a)
                  for update skip locked) l)
    delete from ff_quota_window w using locked l
     where w.quota_policy_id = l.quota_policy_id and w.execution_id = l.execution_id
       and w.attempt_index = l.attempt_index;
    get diagnostics v_some = row_count;
    v_gone := v_gone + v_some;

    -- Notes of failed rows belong to their step, which may be writing them just now.
    for v_name in
        select distinct substr(x.key, 2)::jsonb ->> 0 from unnest(p_keys) x(key) where left(x.key, 1) = 'e'
    loop
        continue when not ff__sweep_guard(v_name);
        delete from ff_reconciler_error e
         using (select substr(x.key, 2)::jsonb ->> 1 as row_key from unnest(p_keys) x(key)
                 where left(x.key, 1) = 'e' and substr(x.key, 2)::jsonb ->> 0 = v_name) k
         where e.name = v_name and e.row_key = k.row_key and e.next_retry_at_ms <= p_now_ms - 3600000;
        get diagnostics v_some = row_count;
        v_gone := v_gone + v_some;
    end loop;
    return v_gone;
end
$$;
