-- Locks: the executions, in the order of their ids. Each item is judged as ff_renew would.
create or replace function ff_renew_many(p_handles text[], p_lease_ttl_ms bigint default null)
returns table (ordinal int, outcome text, lease_expires_at_ms bigint, error_kind text)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
    v_count int := cardinality(p_handles);
    v_fences ff_fence[];
    v_now bigint;
    v_xid bigint;
    v_expiry bigint[];
begin
    if p_handles is null then
        perform ff__invalid('p_handles', 'must not be null');
    elsif v_count > 1000 then
        perform ff__invalid('p_handles', 'must have at most 1000 items');
    elsif p_lease_ttl_ms is not null then
        perform ff__check_ttl('p_lease_ttl_ms', p_lease_ttl_ms);
    end if;
    v_fences := array(select ff__parse_handle(x.handle) from unnest(p_handles) with ordinality x(handle, n) order by x.n);
    v_now := ff__open_many(v_fences);
    v_xid := pg_current_xact_id()::text::bigint;

    with x as materialized (
        select c.execution_id, c.partition_key, c.flow_id, c.lane_id, c.namespace, c.current_attempt_index, c.lease_id,
               c.lease_epoch, c.worker_id, c.worker_instance_id, greatest(v_xid, c.last_event_ord) as ord, i.tags,
               least(v_now + coalesce(p_lease_ttl_ms, c.lease_ttl_ms), c.attempt_timeout_at_ms, c.deadline_at_ms) as expiry,
               array_agg(f.n) as ns
          from unnest(v_fences) with ordinality
               f(execution_id, wire_id, attempt_index, lease_id, lease_epoch, attempt_id, n)
          join ff_exec_core c
            on c.execution_id = f.execution_id and c.lease_id = f.lease_id and c.lease_epoch = f.lease_epoch
           and c.current_attempt_id = f.attempt_id and c.current_attempt_index = f.attempt_index
          join ff_exec_input i on i.execution_id = c.execution_id
         where c.ownership_state = 'leased' and c.lease_expires_at_ms > v_now
         group by c.execution_id, i.execution_id
    ), renewed as (
        update ff_exec_core c set
            lease_renewed_at_ms = v_now, lease_expires_at_ms = x.expiry,
            lease_check_at_ms = least(c.lease_check_at_ms, x.expiry), last_mutation_at_ms = v_now, last_event_ord = x.ord
          from x where c.execution_id = x.execution_id
    ), events as (
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, lease_id, lease_epoch, worker_id, worker_instance_id)
        select 'lease', 'renewed', f.gen, x.ord, v_now, x.execution_id, x.partition_key, x.flow_id, x.lane_id, x.namespace,
               x.tags, x.current_attempt_index, x.lease_id, x.lease_epoch, x.worker_id, x.worker_instance_id
          from x
         cross join ff_event_family f
         where f.family = 'lease' and 'renewed' <> all (f.muted) and '*' <> all (f.muted)
    )
    select array_agg(x.expiry order by o.n) into v_expiry
      from generate_series(1, v_count) o(n) left join x on o.n = any (x.ns);

    for v_n in 1..v_count loop
        ordinal := v_n;
        lease_expires_at_ms := v_expiry[ordinal];
        error_kind := case
            when lease_expires_at_ms is not null then null
            when p_handles[ordinal] is null then 'invalid_input'
            when (v_fences[ordinal]).lease_id is null then 'invalid_handle'
            else coalesce(ff__verdict(ff__open((v_fences[ordinal]).execution_id), v_fences[ordinal], null),
                          'corrupt_state') end;
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
