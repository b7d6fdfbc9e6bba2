-- A lease ran out: the row becomes reclaimable and enters the ready index. The fence stays on it, so that the holder
-- hears lease_expired.
create or replace function ff__mark_expired(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    e := ff__emit(e, 'lease', 'expired', 'ttl');
    update ff_exec_core c set
        ownership_state = 'lease_expired_reclaimable', blocking_reason = 'waiting_for_worker',
        attempt_state = 'attempt_interrupted', last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms,
        last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    perform ff__wake_lane(e.lane_id, e.execution_id);
    if e.limited then
        perform ff__free_slot(e, false);
    end if;
end
$$;
