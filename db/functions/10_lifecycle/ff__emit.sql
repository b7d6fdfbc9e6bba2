-- An event of an execution, at the operation's time and ord, with the namespace and tags that the execution has now.
-- Lease events name the lease and worker as they stand in e: emit before clearing them. Returns e: an assignment is
-- cheaper than PERFORM, which runs a query.
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
    v_gen int := ff__event_gate(p_family, p_event_type);
begin
    if v_gen is null then
        return e;
    elsif p_family = 'lease' then
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, lease_id, lease_epoch, worker_id, worker_instance_id)
        values (
            p_family, p_event_type, v_gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
            e.namespace, (select i.tags from ff_exec_input i where i.execution_id = e.execution_id),
            e.current_attempt_index, p_reason, e.lease_id, e.lease_epoch, e.worker_id, e.worker_instance_id);
    else
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, outcome, details)
        values (
            p_family, p_event_type, v_gen, e.ord, e.now_ms, e.execution_id, e.partition_key, e.flow_id, e.lane_id,
            e.namespace, (select i.tags from ff_exec_input i where i.execution_id = e.execution_id),
            e.current_attempt_index, p_reason, p_outcome, p_details);
    end if;
    return e;
end
$$;
