-- ff__emit for what waits: an event that names suspension and waitpoint, and the signal if there is one.
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
    perform ff__emit_event(p_family, p_event_type, p_reason, e.now_ms, e.ord, e.execution_id, e.current_attempt_index,
                           e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'), p_details => p_details,
                           p_wait => (p_suspension_id, p_waitpoint_id, p_signal_id, p_source_type, p_source_identity,
                                      p_effect)::ff_event_wait);
    return e;
end
$$;
