-- Locks: registrations, all without waiting. Safe to run many at once.
create or replace function ff_sweep_workers(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
as $$
declare
    b ff_sweep := ff__sweep_open('sweep_workers', p_limit);
begin
    while b.again loop
        select array_agg(x.key order by x.due), array_agg(x.due order by x.due) into b.keys, b.due_ms
          from (select jsonb_build_array(w.namespace, w.worker_instance_id)::text as key,
                       w.last_heartbeat_ms + w.liveness_ttl_ms as due
                  from ff_worker_registry w
                 where w.last_heartbeat_ms + w.liveness_ttl_ms between b.from_ms and b.now_ms
                   and not (b.putting_off and ff__put_off(b.name, jsonb_build_array(w.namespace, w.worker_instance_id)::text))
                   and jsonb_build_array(w.namespace, w.worker_instance_id)::text not in (select unnest(b.seen))
                 order by w.last_heartbeat_ms + w.liveness_ttl_ms limit b.room) x;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_sweep_workers(int) is
$$Removes the registrations of workers that have not been heard of for their liveness_ttl_ms. Their leases are left to run
out. Longest unheard first, at most p_limit.

Errors: invalid_input$$;
