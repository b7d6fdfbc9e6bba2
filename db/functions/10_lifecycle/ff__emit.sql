-- An event of an execution, at the operation's time and ord, with the namespace and tags that the execution has now;
-- before it the end of a lease that this operation gave up (e.lease_end). Lease events name the lease and worker as they
-- stand in e. Muted types are left out; a family that notifies at commit rings, but for a renewal. The last statement does
-- all of this; the two before it are its cheap forms while no lease or completion event is muted or rung for.
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
declare
    v_gen int;
begin
    if e.tags is null then
        e.tags := (select i.tags from ff_exec_input i where i.execution_id = e.execution_id);
    end if;
    select g.gen into v_gen from ff_event_generation g where g.id and g.plain;
    if p_family = 'lease' and v_gen is not null then
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, lease_id, lease_epoch, worker_id, worker_instance_id)
        values
            ('lease', p_event_type, v_gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
             e.namespace, e.tags, e.current_attempt_index, p_reason, e.lease_id, e.lease_epoch, e.worker_id,
             e.worker_instance_id);
        return e;
    elsif p_family = 'completion' and e.lease_end is not null and v_gen is not null then
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, outcome, lease_id, lease_epoch, worker_id, worker_instance_id)
        values
            ('lease', e.lease_end, v_gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
             e.namespace, e.tags, e.current_attempt_index, e.lease_end_reason, null, e.lease_id, e.lease_epoch,
             e.worker_id, e.worker_instance_id),
            ('completion', p_event_type, v_gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
             e.namespace, e.tags, e.current_attempt_index, p_reason, p_outcome, null, null, null, null);
        e.lease_end := null;
        return e;
    end if;
    insert into ff_event (
        family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
        attempt_index, reason, outcome, details, lease_id, lease_epoch, worker_id, worker_instance_id)
    select x.family, x.event_type, f.gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
           e.namespace, e.tags, e.current_attempt_index, x.reason, x.outcome, x.details,
           case when x.family = 'lease' then e.lease_id end, case when x.family = 'lease' then e.lease_epoch end,
           case when x.family = 'lease' then e.worker_id end,
           case when x.family = 'lease' then e.worker_instance_id end
      from (values ('lease', e.lease_end, e.lease_end_reason, null::text, null::jsonb),
                   (p_family, p_event_type, p_reason, p_outcome, p_details)
           ) x(family, event_type, reason, outcome, details)
     cross join lateral (select y.gen, y.muted, y.notify from ff_event_family y where y.family = x.family offset 0) f
     where x.event_type is not null and x.event_type <> all (f.muted) and '*' <> all (f.muted)
       and (f.notify <> 'commit' or x.event_type = 'renewed' or ff__ring(x.family));
    e.lease_end := null;
    return e;
end
$$;
