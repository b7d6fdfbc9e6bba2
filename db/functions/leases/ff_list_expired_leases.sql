create or replace function ff_list_expired_leases(
    p_namespace text default null, p_grace_ms bigint default 0, p_after text default null, p_limit int default 1000
) returns table (
    cursor text, execution_id text, namespace text, lane_id text, lease_epoch bigint, attempt_index int, worker_id text,
    worker_instance_id text, expires_at_ms bigint, ownership_state text
)
language plpgsql stable security definer
as $$
declare
    v_after ff_time_cursor := ff__decode_time_cursor(p_after);
    v_now bigint := ff__now_ms();
    v_until bigint;
begin
    perform ff__check_limit(p_limit, 10000);
    if p_grace_ms is null then
        perform ff__invalid('p_grace_ms', 'must not be null');
    end if;
    perform ff__check_time('p_grace_ms', p_grace_ms, p_from_ms => v_now);
    v_until := v_now - p_grace_ms;
    -- due_at_ms of a lease is never later than its end. Executions with an expired lease are ready unless reserved by a
    -- grant or in a flow that has not started.
    return query
        select c.lease_expires_at_ms::text || '-' || c.execution_id::text, ff__wire_id(c.partition_key, c.execution_id),
               c.namespace, c.lane_id, c.lease_epoch, c.attempt_index, c.worker_id, c.worker_instance_id,
               c.lease_expires_at_ms, case c.state when 'leased' then 'leased' else 'lease_expired_reclaimable' end
          from (select x.* from ff_queue q join ff_execution x on x.queue_id = q.queue_id and x.due_at_ms <= v_until
                 where x.state = 'leased' and not x.granted
                union all
                select x.* from ff_execution x where x.ready_in is not null and x.state = 'lease_expired'
                union all
                select x.* from ff_claim_grant g join ff_execution x on x.execution_id = g.execution_id
                 where x.state in ('leased', 'lease_expired') and x.granted
                union all
                select x.* from ff_flow_core f join ff_execution x on x.flow_id = f.flow_id
                 where f.public_flow_state = 'building' and x.state = 'lease_expired' and not x.granted) c
         where c.lease_expires_at_ms <= v_until
           and (p_namespace is null or c.namespace = p_namespace)
           and (p_after is null or (c.lease_expires_at_ms, c.execution_id) > (v_after.at_ms, v_after.id))
         order by c.lease_expires_at_ms, c.execution_id limit p_limit;
end
$$;

comment on function ff_list_expired_leases(text, bigint, text, int) is
$$Leases that expired at least p_grace_ms ago and whose executions are not reclaimed yet, oldest first. p_after: the
cursor of the last row read.

Outcomes: ownership_state = leased | lease_expired_reclaimable
Errors: invalid_input, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
