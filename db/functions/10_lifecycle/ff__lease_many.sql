-- ff__lease for many rows that are locked and plain (see ff_claim_many), as one statement: an attempt starts on each.
create or replace function ff__lease_many(
    p_ids uuid[], p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint
) returns setof ff_claim_row
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms();
    v_xid bigint := pg_current_xact_id()::text::bigint;
begin
    return query
    with x as materialized (
        select u.id, u.n, c.attempt_state, c.current_attempt_index as previous,
               ff__mint_id(v_now, c.partition_key) as lease_id, ff__mint_id(v_now, c.partition_key) as attempt_id,
               i.execution_kind, i.payload, i.payload_encoding, i.tags,
               v_now + c.attempt_timeout_ms as timeout_at_ms
          from unnest(p_ids) with ordinality u(id, n)
          join ff_exec_core c on c.execution_id = u.id
          join ff_exec_input i on i.execution_id = u.id
    ), leased as (
        update ff_exec_core c set
            lifecycle_phase = 'active', ownership_state = 'leased', eligibility_state = 'not_applicable',
            blocking_reason = 'none', blocking_detail = null, attempt_state = 'running_attempt',
            current_attempt_index = c.total_attempt_count, total_attempt_count = c.total_attempt_count + 1,
            current_attempt_id = x.attempt_id,
            lease_id = x.lease_id, lease_epoch = c.lease_epoch + 1, lease_ttl_ms = p_lease_ttl_ms,
            lease_acquired_at_ms = v_now, lease_renewed_at_ms = null, lease_revoke_reason = null,
            lease_expires_at_ms = least(v_now + p_lease_ttl_ms, x.timeout_at_ms, c.deadline_at_ms),
            lease_check_at_ms = least(v_now + p_lease_ttl_ms, x.timeout_at_ms, c.deadline_at_ms),
            worker_id = p_worker_id, worker_instance_id = p_worker_instance_id, reserved_until_ms = null,
            attempt_timeout_at_ms = x.timeout_at_ms, attempt_remaining_ms = null, delay_until_ms = null,
            not_before_ms = null, failure_reason = null, failure_category = null,
            started_at_ms = coalesce(c.started_at_ms, v_now), last_transition_at_ms = v_now, last_mutation_at_ms = v_now,
            last_event_ord = greatest(v_xid, c.last_event_ord)
          from x where c.execution_id = x.id
        returning c.execution_id, c.partition_key, c.namespace, c.lane_id, c.flow_id, c.priority, c.lease_epoch,
                  c.current_attempt_index, c.lease_expires_at_ms, c.attempt_timeout_at_ms, c.deadline_at_ms,
                  c.last_event_ord
    ), attempts as (
        insert into ff_attempt (
            execution_id, attempt_index, previous_attempt_index, attempt_id, attempt_type, state, lease_id, lease_epoch,
            worker_id, worker_instance_id, started_at_ms)
        select l.execution_id, l.current_attempt_index, x.previous, x.attempt_id,
               case x.attempt_state when 'pending_first_attempt' then 'initial' when 'pending_retry_attempt' then 'retry'
                                    else 'replay' end,
               'started', x.lease_id, l.lease_epoch, p_worker_id, p_worker_instance_id, v_now
          from leased l join x on x.id = l.execution_id
    ), events as (
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, lease_id, lease_epoch, worker_id, worker_instance_id)
        select 'lease', 'acquired', f.gen, l.last_event_ord, v_now, l.execution_id, l.partition_key, l.flow_id, l.lane_id,
               l.namespace, x.tags, l.current_attempt_index, x.lease_id, l.lease_epoch, p_worker_id, p_worker_instance_id
          from leased l join x on x.id = l.execution_id
         cross join ff_event_family f
         where f.family = 'lease' and 'acquired' <> all (f.muted) and '*' <> all (f.muted)
           and (f.notify <> 'commit' or ff__ring(f.family))
    )
    select ff__encode_handle(l.partition_key, l.execution_id, l.current_attempt_index, x.lease_id, l.lease_epoch,
                             x.attempt_id),
           'fresh', ff__wire_id(l.partition_key, l.execution_id), l.namespace, l.lane_id, l.flow_id, x.execution_kind,
           x.payload, x.payload_encoding, x.tags, l.priority, l.current_attempt_index, x.attempt_id,
           case x.attempt_state when 'pending_first_attempt' then 'initial' when 'pending_retry_attempt' then 'retry'
                                else 'replay' end,
           x.lease_id, l.lease_epoch, l.lease_expires_at_ms, l.attempt_timeout_at_ms, l.deadline_at_ms
      from leased l join x on x.id = l.execution_id
     order by x.n;
end
$$;
