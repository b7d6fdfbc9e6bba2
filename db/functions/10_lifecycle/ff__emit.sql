-- An event of an execution, at the operation's time and ord, with the namespace and tags that the execution has now;
-- before it the end of a lease that this operation gave up (e.lease_end). Lease events name the lease and worker as they
-- stand in e. Muted types are left out; a family that notifies at commit rings. One statement, because each costs.
-- Returns e without lease_end: an assignment is cheaper than PERFORM, which runs a query.
create or replace function ff__emit(
    e ff_exec,
    p_family text,
    p_event_type text,
    p_reason text default null,
    p_outcome text default null,
    p_details jsonb default null
) returns ff_exec
language plpgsql volatile
as $$
begin
    if e.lease_end is null then
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, outcome, details, lease_id, lease_epoch, worker_id, worker_instance_id)
        select p_family, p_event_type, g.gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
               e.namespace, (select i.tags from ff_exec_input i where i.execution_id = e.execution_id),
               e.current_attempt_index, p_reason, p_outcome, p_details,
               case when p_family = 'lease' then e.lease_id end, case when p_family = 'lease' then e.lease_epoch end,
               case when p_family = 'lease' then e.worker_id end,
               case when p_family = 'lease' then e.worker_instance_id end
          from ff_event_family f, ff_event_generation g
         where f.family = p_family and g.id and p_event_type <> all (f.muted) and '*' <> all (f.muted)
           and (f.notify <> 'commit' or ff__ring(f.family));
        return e;
    end if;
    insert into ff_event (
        family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
        attempt_index, reason, outcome, details, lease_id, lease_epoch, worker_id, worker_instance_id)
    select x.family, x.event_type, g.gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
           e.namespace, (select i.tags from ff_exec_input i where i.execution_id = e.execution_id),
           e.current_attempt_index, x.reason, x.outcome, x.details, x.lease_id, x.lease_epoch, x.worker_id,
           x.worker_instance_id
      from (values (1, 'lease', e.lease_end, e.lease_end_reason, null::text, null::jsonb, e.lease_id, e.lease_epoch,
                    e.worker_id, e.worker_instance_id),
                   (2, p_family, p_event_type, p_reason, p_outcome, p_details, null, null, null, null)
           ) x(n, family, event_type, reason, outcome, details, lease_id, lease_epoch, worker_id, worker_instance_id),
           ff_event_family f, ff_event_generation g
     where f.family = x.family and g.id and x.event_type <> all (f.muted) and '*' <> all (f.muted)
       and (f.notify <> 'commit' or ff__ring(f.family))
     order by x.n;
    e.lease_end := null;
    return e;
end
$$;
