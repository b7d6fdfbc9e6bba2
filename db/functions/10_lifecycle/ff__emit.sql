-- An event of an execution, at the operation's time and ord (see ff__stamp), with the namespace and tags that the
-- execution has now. Lease events name the lease and worker as they stand in e: emit before clearing them.
create or replace function ff__emit(
    e ff_exec_core,
    p_family text,
    p_event_type text,
    p_reason text default null,
    p_outcome text default null,
    p_details jsonb default null
) returns bigint
language plpgsql volatile
as $$
declare
    v_event ff_event;
begin
    v_event.family := p_family;
    v_event.event_type := p_event_type;
    v_event.ord := e.last_event_ord;
    v_event.occurred_at_ms := e.last_mutation_at_ms;
    v_event.execution_id := e.execution_id;
    v_event.partition_key := e.partition_key;
    v_event.flow_id := e.flow_id;
    v_event.lane_id := e.lane_id;
    v_event.namespace := e.namespace;
    v_event.tags := (select i.tags from ff_exec_input i where i.execution_id = e.execution_id);
    v_event.attempt_index := e.current_attempt_index;
    v_event.reason := p_reason;
    v_event.outcome := p_outcome;
    v_event.details := p_details;
    if p_family = 'lease' then
        v_event.lease_id := e.lease_id;
        v_event.lease_epoch := e.lease_epoch;
        v_event.worker_id := e.worker_id;
        v_event.worker_instance_id := e.worker_instance_id;
    end if;
    return ff__write_event(v_event);
end
$$;
