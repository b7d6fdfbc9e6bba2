-- The end of an execution (p_outcome, p_reason) and, as the same row, of the lease that e holds; without p_outcome that of
-- the lease alone. A lease ends `released` for p_lease_reason, or `expired` if p_timer names the timer that ended it or its
-- time had run out unnoticed; one that was marked expired or revoked has had its event. Returns the id of the completion.
create or replace function ff__emit_end(
    e ff_exec, p_lease_reason text, p_timer text, p_outcome text default null, p_reason text default null
) returns bigint
language plpgsql volatile
as $$
declare
    v_lease_type text;
begin
    if e.ownership_state = 'leased' then
        if p_timer is null and e.lease_expires_at_ms > e.now_ms then
            v_lease_type := 'released';
        else
            v_lease_type := 'expired';
            p_lease_reason := coalesce(p_timer, ff__lapse_reason(e));
        end if;
    end if;
    if e.tags is null then
        e.tags := (select i.tags from ff_exec_input i where i.execution_id = e.execution_id);
    end if;
    if p_outcome is null then
        return case when v_lease_type is not null
                    then ff__emit_event('lease', v_lease_type, p_lease_reason, e.now_ms, e.ord, e.execution_id,
                                        e.current_attempt_index, e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'),
                                        e.lease_id, e.lease_epoch, e.worker_id, e.worker_instance_id) end;
    elsif v_lease_type is null then
        return ff__emit_event('completion', p_outcome, p_reason, e.now_ms, e.ord, e.execution_id,
                              e.current_attempt_index, e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'));
    end if;
    return ff__emit_event('completion', p_outcome, p_reason, e.now_ms, e.ord, e.execution_id, e.current_attempt_index,
                          e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'), e.lease_id, e.lease_epoch, e.worker_id,
                          e.worker_instance_id, v_lease_type, p_lease_reason);
end
$$;
