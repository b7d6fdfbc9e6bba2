-- Renews, as a set, the leases whose fences hold, at most to the attempt's timeout and the execution's deadline. The
-- caller has locked the rows. No indexed column changes unless a lease is shortened to end before its next check.
-- Returns the new end for each handle, NULL where its fence does not hold.
create or replace function ff__renew(p_ids uuid[], p_handles text[], p_lease_ttl_ms bigint, p_now_ms bigint)
returns bigint[]
language plpgsql volatile
as $$
declare
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_expiry bigint[] := array_fill(null::bigint, array[cardinality(p_ids)]);
    r record;
begin
    for r in
        with renewed as (
            update ff_execution c set
                lease_renewed_at_ms = p_now_ms,
                lease_expires_at_ms = least(p_now_ms + coalesce(p_lease_ttl_ms, c.lease_ttl_ms),
                                            c.attempt_timeout_at_ms, c.deadline_at_ms),
                due_at_ms = least(c.due_at_ms, p_now_ms + coalesce(p_lease_ttl_ms, c.lease_ttl_ms)),
                last_mutation_at_ms = p_now_ms, last_event_ord = greatest(v_xid, c.last_event_ord)
              from unnest(p_ids, p_handles) with ordinality x(id, handle, n)
             where c.execution_id = any (array[x.id]) and ff__fence_holds(c, p_now_ms, x.handle)
            returning x.n, c.execution_id, c.attempt_index, c.flow_id, c.lane_id, c.namespace, c.tags, c.lease_id,
                      c.lease_epoch, c.worker_id, c.worker_instance_id, c.lease_expires_at_ms, c.last_event_ord
        )
        select d.last_event_ord as ord, d.worker_id, d.worker_instance_id, array_agg(d.n) as places,
               array_agg(d.lease_expires_at_ms) as ends, array_agg(d.execution_id) as ids,
               array_agg(d.attempt_index) as attempts, array_agg(d.flow_id) as flows, array_agg(d.lane_id) as lanes,
               array_agg(d.namespace) as namespaces, array_agg(d.tags) as tags, array_agg(d.lease_id) as leases,
               array_agg(d.lease_epoch) as epochs
          from renewed d
         group by d.last_event_ord, d.worker_id, d.worker_instance_id
    loop
        perform ff__emit_many('lease', 'renewed', null, p_now_ms, r.ord, r.ids, r.attempts, r.flows, r.lanes,
                              r.namespaces, r.tags, r.leases, r.epochs, r.worker_id, r.worker_instance_id);
        for v_n in 1..cardinality(r.places) loop
            v_expiry[r.places[v_n]] := r.ends[v_n];
        end loop;
    end loop;
    return v_expiry;
end
$$;

-- Body of ff_renew and ff_renew_lease: as ff__renew for one lease; raises the error of a fence that does not hold.
create or replace function ff__renew_one(
    p_fence ff_fence, p_lease_ttl_ms bigint, out lease_epoch bigint, out lease_expires_at_ms bigint
)
language plpgsql volatile
as $$
declare
    v_handle text;
begin
    if p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    p_fence.attempt_index := coalesce(p_fence.attempt_index, (select c.attempt_index from ff_execution c
                                                               where c.execution_id = p_fence.execution_id));
    v_handle := ff__encode_handle(ff__partition(p_fence.execution_id), p_fence.execution_id, p_fence.attempt_index,
                                  p_fence.lease_id, p_fence.lease_epoch, p_fence.attempt_id);
    lease_expires_at_ms := (ff__renew(array[p_fence.execution_id], array[v_handle], p_lease_ttl_ms,
                                      ff__lock_executions(array[p_fence.execution_id])))[1];
    lease_epoch := p_fence.lease_epoch;
    if lease_expires_at_ms is null then
        perform ff__fence(p_fence);
    end if;
end
$$;
