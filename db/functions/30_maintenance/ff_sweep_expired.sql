-- Locks: the executions whose slots it drops, the rows it deletes, without waiting. Safe to run many at once.
create or replace function ff_sweep_expired(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_expired', p_limit);
begin
    while b.again loop
        -- The oldest of each kind, then the oldest of these. A key is a letter for the kind and a json array.
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select y.key, y.due
                  from ((select 'i' || k.key as key, i.expires_at_ms as due
                           from ff_idempotency i
                          cross join lateral (select jsonb_build_array(i.namespace, i.idempotency_key)::text) k(key)
                          where i.expires_at_ms between b.from_ms and b.now_ms
                            and not (b.putting_off and ff__put_off(b.name, 'i' || k.key))
                            and ('i' || k.key) not in (select unnest(b.seen))
                          order by i.expires_at_ms limit b.room)
                        union all
                        (select 'd' || k.key, d.expires_at_ms
                           from ff_budget_usage_dedup d
                          cross join lateral (select jsonb_build_array(d.budget_id, d.dedup_key)::text) k(key)
                          where d.expires_at_ms between b.from_ms and b.now_ms
                            and not (b.putting_off and ff__put_off(b.name, 'd' || k.key))
                            and ('d' || k.key) not in (select unnest(b.seen))
                          order by d.expires_at_ms limit b.room)
                        union all
                        (select 'r' || k.key, q.expires_at_ms
                           from ff_quota_reservation q
                          cross join lateral (select jsonb_build_array(q.quota_policy_id, q.execution_id)::text) k(key)
                          where q.expires_at_ms between b.from_ms and b.now_ms
                            and not (b.putting_off and ff__put_off(b.name, 'r' || k.key))
                            and ('r' || k.key) not in (select unnest(b.seen))
                          order by q.expires_at_ms limit b.room)
                        union all
                        select 'w' || w.key, w.admitted_at_ms + p.window_seconds * 1000
                          from ff_quota_policy p
                         cross join lateral (
                               select k.key, z.admitted_at_ms
                                 from ff_quota_window z
                                cross join lateral (select jsonb_build_array(z.quota_policy_id, z.execution_id,
                                                                             z.attempt_index)::text) k(key)
                                where z.quota_policy_id = p.quota_policy_id
                                  and z.admitted_at_ms between b.from_ms - p.window_seconds * 1000
                                                           and b.now_ms - p.window_seconds * 1000
                                  and not (b.putting_off and ff__put_off(b.name, 'w' || k.key))
                                  and ('w' || k.key) not in (select unnest(b.seen))
                                order by z.admitted_at_ms limit b.room) w
                        union all
                        select 'e' || e.key, e.next_retry_at_ms + 3600000
                          from ff_reconciler n
                         cross join lateral (
                               select jsonb_build_array(z.name, z.row_key)::text as key, z.next_retry_at_ms
                                 from ff_reconciler_error z
                                where z.name = n.name
                                  and z.next_retry_at_ms between b.from_ms - 3600000 and b.now_ms - 3600000
                                  and ('e' || jsonb_build_array(z.name, z.row_key)::text) not in (select unnest(b.seen))
                                order by z.next_retry_at_ms limit b.room) e
                       ) y
                 order by y.due limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_expired(int) is
$$Deletes what has had its time: idempotency keys, keys of usage reports, admissions that left their quota window, unused
quota slots, and notes of failed rows that no step has tried again for an hour. Oldest first, at most p_limit.

Errors: invalid_input$$;
