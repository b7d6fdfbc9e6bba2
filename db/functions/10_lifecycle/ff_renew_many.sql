-- Locks: the executions, in the order of their ids. Each item is judged as ff_renew would.
create or replace function ff_renew_many(p_handles text[], p_lease_ttl_ms bigint default null)
returns table (ordinal int, outcome text, lease_expires_at_ms bigint, error_kind text)
language plpgsql volatile security definer
as $$
declare
    v_count int := cardinality(p_handles);
    v_ids uuid[];
    v_now bigint;
    v_xid bigint;
    v_places int[];
    v_renewed bigint[];
    v_expiry bigint[] := '{}'::bigint[];
    v_fence ff_fence;
begin
    if p_handles is null then
        perform ff__invalid('p_handles', 'must not be null');
    elsif array_ndims(p_handles) > 1 then
        perform ff__invalid('p_handles', 'must have one dimension');
    elsif v_count > 1000 then
        perform ff__invalid('p_handles', 'must have at most 1000 items');
    elsif p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    p_handles := p_handles[:]; -- from index 1 on, whatever the caller's bounds
    v_ids := ff__handle_ids(p_handles);
    v_now := ff__open_many(v_ids);
    v_xid := pg_current_xact_id()::text::bigint;
    with renewed as (
        update ff_exec_core c set
            lease_renewed_at_ms = v_now,
            lease_expires_at_ms = least(v_now + coalesce(p_lease_ttl_ms, c.lease_ttl_ms), c.attempt_timeout_at_ms,
                                        c.deadline_at_ms),
            lease_check_at_ms = least(c.lease_check_at_ms, v_now + coalesce(p_lease_ttl_ms, c.lease_ttl_ms)),
            last_mutation_at_ms = v_now, last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(v_ids, p_handles) with ordinality x(id, handle, n)
         where c.execution_id = any (array[x.id]) -- see ff__open_many
           -- CASE, so that no plan reads all that is leased.
           and case when c.ownership_state = 'leased' and c.lease_expires_at_ms > v_now
                    then x.handle = ff__encode_handle(c.partition_key, c.execution_id, c.current_attempt_index, c.lease_id,
                                                      c.lease_epoch, c.current_attempt_id) end
        returning x.n, c.execution_id, c.flow_id, c.lane_id, c.namespace, c.current_attempt_index,
                  c.lease_id, c.lease_epoch, c.lease_expires_at_ms, c.worker_id, c.worker_instance_id, c.tagged,
                  c.last_event_ord
    ), events as materialized (
        select ff__emit_many('lease', 'renewed', null, v_now, e.last_event_ord, array_agg(e.execution_id),
                             array_agg(e.current_attempt_index), array_agg(e.flow_id), array_agg(e.lane_id),
                             array_agg(e.namespace),
                             array_agg(case when e.tagged then (select i.tags from ff_exec_input i
                                                                 where i.execution_id = e.execution_id) end),
                             array_agg(e.lease_id), array_agg(e.lease_epoch), e.worker_id, e.worker_instance_id)
          from renewed e group by e.last_event_ord, e.worker_id, e.worker_instance_id
    )
    select array_agg(e.n), array_agg(e.lease_expires_at_ms) into v_places, v_renewed from renewed e
     where (select count(*) from events) > 0; -- runs it
    -- Put in place one by one: a join with the ordinals would be a loop in a loop.
    for v_n in 1..coalesce(cardinality(v_places), 0) loop
        v_expiry[v_places[v_n]] := v_renewed[v_n];
    end loop;
    for v_n in 1..v_count loop
        ordinal := v_n;
        lease_expires_at_ms := v_expiry[v_n];
        error_kind := null;
        if lease_expires_at_ms is null then
            -- Refused, or a handle that is repeated: the first of them was renewed.
            v_fence := ff__parse_handle(p_handles[v_n]);
            if v_fence.lease_id is null then
                error_kind := case when p_handles[v_n] is null then 'invalid_input' else 'invalid_handle' end;
            else
                error_kind := ff__verdict(ff__open(v_fence.execution_id), v_fence, null);
                lease_expires_at_ms := case when error_kind is null
                                            then v_expiry[array_position(p_handles, p_handles[v_n])] end;
            end if;
        end if;
        outcome := case when error_kind is null then 'renewed' else 'refused' end;
        return next;
    end loop;
end
$$;

comment on function ff_renew_many(text[], bigint) is
$$ff_renew for up to 1000 handles in one call: keeps all leases of a worker alive. One row per handle, in their order; one
that ff_renew would refuse is refused with that error_kind, the others are renewed.

Outcomes: outcome = renewed | refused
Nullable: lease_expires_at_ms, error_kind
Errors: invalid_input$$;
