-- Moves the end of the leases whose fences hold, within the attempt's timeout and the execution's deadline, as a set. The
-- caller has locked the rows. Unless a lease gets shorter than its next check, no indexed column changes. Returns the new end
-- for each fence, NULL where it does not hold.
create or replace function ff__renew(p_fences ff_fence[], p_lease_ttl_ms bigint, p_now_ms bigint) returns bigint[]
language plpgsql volatile
as $$
declare
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_places int[];
    v_ids uuid[];
    v_ends bigint[];
    v_expiry bigint[] := array_fill(null::bigint, array[cardinality(p_fences)]);
begin
    with renewed as (
        update ff_execution c set
            lease_renewed_at_ms = p_now_ms,
            lease_expires_at_ms = least(p_now_ms + coalesce(p_lease_ttl_ms, c.lease_ttl_ms), c.attempt_timeout_at_ms,
                                        c.deadline_at_ms),
            due_at_ms = least(c.due_at_ms, p_now_ms + coalesce(p_lease_ttl_ms, c.lease_ttl_ms)),
            last_mutation_at_ms = p_now_ms, last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(p_fences) with ordinality x(execution_id, wire_id, attempt_index, lease_id, lease_epoch, attempt_id, n)
         where c.execution_id = any (array[x.execution_id])
           and ff__fence_holds(c, p_now_ms, x.lease_id, x.lease_epoch, x.attempt_id, x.attempt_index)
        returning x.n, c.execution_id, c.lease_expires_at_ms
    )
    select array_agg(r.n), array_agg(r.execution_id), array_agg(r.lease_expires_at_ms) into v_places, v_ids, v_ends
      from (select y.* from renewed y order by y.n) r;
    if v_ids is not null then
        perform ff__emit_executions(v_ids, 'renewed', null, null, null, p_now_ms);
    end if;
    for v_n in 1..coalesce(cardinality(v_places), 0) loop
        v_expiry[v_places[v_n]] := v_ends[v_n];
    end loop;
    return v_expiry;
end
$$;

-- Locks the executions of many fences in the order of their ids (waits for them), so that two batches cannot deadlock.
-- Returns the time, read after the last lock.
create or replace function ff__lock_fences(p_fences ff_fence[]) returns bigint
language plpgsql volatile
as $$
begin
    perform from (select distinct x.execution_id from unnest(p_fences) x(
                         execution_id, wire_id, attempt_index, lease_id, lease_epoch, attempt_id) order by 1) y
      cross join lateral (select from ff_execution c where c.execution_id = y.execution_id for no key update offset 0) z;
    return ff__now_ms();
end
$$;
