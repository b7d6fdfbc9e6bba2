-- An event of an execution, at the operation's time and ord, with the namespace and tags that the execution has now. Lease
-- events name the lease and worker as they stand in e. Returns e, with its tags.
create or replace function ff__emit(
    e ff_exec, p_family text, p_event_type text, p_reason text default null, p_details jsonb default null
) returns ff_exec
language plpgsql volatile
as $$
begin
    if p_family = 'lease' then
        perform ff__emit_event('lease', p_event_type, p_reason, e.now_ms, e.ord, e.execution_id,
                               e.current_attempt_index, e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'),
                               e.lease_id, e.lease_epoch, e.worker_id, e.worker_instance_id);
    else
        perform ff__emit_event(p_family, p_event_type, p_reason, e.now_ms, e.ord, e.execution_id,
                               e.current_attempt_index, e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'),
                               p_details => p_details);
    end if;
    return e;
end
$$;
