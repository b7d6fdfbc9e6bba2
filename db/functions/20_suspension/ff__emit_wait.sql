-- ff__emit for what waits: an event that names suspension and waitpoint, and the signal if there is one; before it the
-- end of a lease that this operation gave up (e.lease_end). Returns e without lease_end.
create or replace function ff__emit_wait(
    e ff_exec,
    p_family text,
    p_event_type text,
    p_reason text,
    p_suspension_id uuid,
    p_waitpoint_id uuid,
    p_details jsonb default null,
    p_signal_id uuid default null,
    p_source_type text default null,
    p_source_identity text default null,
    p_effect text default null
) returns ff_exec
language plpgsql volatile
as $$
begin
    insert into ff_event (
        family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
        attempt_index, reason, details, lease_id, lease_epoch, worker_id, worker_instance_id, suspension_id,
        waitpoint_id, signal_id, source_type, source_identity, effect)
    select x.family, x.event_type, g.gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
           e.namespace, (select i.tags from ff_exec_input i where i.execution_id = e.execution_id),
           e.current_attempt_index, x.reason, x.details, x.lease_id, x.lease_epoch, x.worker_id, x.worker_instance_id,
           x.suspension_id, x.waitpoint_id, x.signal_id, x.source_type, x.source_identity, x.effect
      from (values (1, 'lease', e.lease_end, e.lease_end_reason, null::jsonb, e.lease_id, e.lease_epoch, e.worker_id,
                    e.worker_instance_id, null::uuid, null::uuid, null::uuid, null::text, null::text, null::text),
                   (2, p_family, p_event_type, p_reason, p_details, null, null, null, null, p_suspension_id,
                    p_waitpoint_id, p_signal_id, p_source_type, p_source_identity, p_effect)
           ) x(n, family, event_type, reason, details, lease_id, lease_epoch, worker_id, worker_instance_id,
               suspension_id, waitpoint_id, signal_id, source_type, source_identity, effect),
           ff_event_family f, ff_event_generation g
     where (x.n = 2 or e.lease_end is not null)
       and f.family = x.family and g.id and x.event_type <> all (f.muted) and '*' <> all (f.muted)
       and (f.notify <> 'commit' or ff__ring(f.family))
     order by x.n;
    e.lease_end := null;
    return e;
end
$$;
