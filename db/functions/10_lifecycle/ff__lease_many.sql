-- ff__lease and ff__claimed for many rows that are locked and plain (see ff_claim_many), as one statement: an attempt of
-- the type given starts on each. ff_claim_many's settings see to it that rows are found by their primary key.
create or replace function ff__lease_many(
    p_ids uuid[], p_types text[], p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint
) returns setof ff_claim_row
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_xid bigint := pg_current_xact_id()::text::bigint;
begin
    return query
    with leased as (
        update ff_exec_core c set
            lifecycle_phase = 'active', ownership_state = 'leased', eligibility_state = 'not_applicable',
            blocking_reason = 'none', blocking_detail = null, attempt_state = 'running_attempt',
            current_attempt_index = c.total_attempt_count, total_attempt_count = c.total_attempt_count + 1,
            current_attempt_id = ff__mint_id(v_now, c.partition_key), lease_id = ff__mint_id(v_now, c.partition_key),
            lease_epoch = c.lease_epoch + 1, lease_ttl_ms = p_lease_ttl_ms,
            lease_acquired_at_ms = v_now, lease_renewed_at_ms = null, lease_revoke_reason = null,
            lease_expires_at_ms = least(v_now + p_lease_ttl_ms, v_now + c.attempt_timeout_ms, c.deadline_at_ms),
            lease_check_at_ms = least(v_now + p_lease_ttl_ms, v_now + c.attempt_timeout_ms, c.deadline_at_ms),
            worker_id = p_worker_id, worker_instance_id = p_worker_instance_id, reserved_until_ms = null,
            attempt_timeout_at_ms = ff__time_after(v_now, c.attempt_timeout_ms), attempt_remaining_ms = null, delay_until_ms = null,
            not_before_ms = null, failure_reason = null, failure_category = null,
            started_at_ms = coalesce(c.started_at_ms, v_now), last_transition_at_ms = v_now, last_mutation_at_ms = v_now,
            last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(p_ids, p_types) with ordinality x(id, attempt_type, n)
         where c.execution_id = any (array[x.id])
        returning x.n, x.attempt_type, c.execution_id, c.partition_key, c.namespace, c.lane_id, c.flow_id, c.priority,
                  c.lease_id, c.lease_epoch, c.current_attempt_id, c.current_attempt_index, c.lease_expires_at_ms,
                  c.attempt_timeout_at_ms, c.deadline_at_ms, c.tagged, c.last_event_ord
    ), attempts as (
        insert into ff_attempt (
            execution_id, attempt_index, previous_attempt_index, attempt_id, attempt_type, state, lease_id, lease_epoch,
            worker_id, worker_instance_id, started_at_ms)
        select l.execution_id, l.current_attempt_index, nullif(l.current_attempt_index - 1, -1), l.current_attempt_id,
               l.attempt_type, 'started', l.lease_id, l.lease_epoch, p_worker_id, p_worker_instance_id, v_now
          from leased l
    ), events as materialized (
        select ff__emit_many('lease', 'acquired', null, v_now, l.last_event_ord, array_agg(l.execution_id),
                             array_agg(l.current_attempt_index), array_agg(l.flow_id), array_agg(l.lane_id),
                             array_agg(l.namespace),
                             array_agg(case when l.tagged then (select i.tags from ff_exec_input i
                                                                 where i.execution_id = l.execution_id) end),
                             array_agg(l.lease_id), array_agg(l.lease_epoch), p_worker_id, p_worker_instance_id)
          from leased l group by l.last_event_ord
    )
    select ff__encode_handle(l.partition_key, l.execution_id, l.current_attempt_index, l.lease_id, l.lease_epoch,
                             l.current_attempt_id),
           'fresh', ff__wire_id(l.partition_key, l.execution_id), l.namespace, l.lane_id, l.flow_id, i.execution_kind,
           i.payload, i.payload_encoding, i.tags, l.priority, l.current_attempt_index, l.current_attempt_id,
           l.attempt_type, l.lease_id, l.lease_epoch, l.lease_expires_at_ms, l.attempt_timeout_at_ms, l.deadline_at_ms
      from leased l join ff_exec_input i on i.execution_id = any (array[l.execution_id])
     where (select count(*) from events) > 0 -- runs it
     order by l.n;
end
$$;
