-- A lease ran out: the row becomes reclaimable and enters the ready index. The fence stays on it, so that the holder
-- hears lease_expired. Returns the row as stored.
create or replace function ff__mark_expired(e ff_exec_core) returns ff_exec_core
language plpgsql volatile
as $$
begin
    perform ff__emit(e, 'lease', 'expired', 'ttl');
    e.ownership_state := 'lease_expired_reclaimable';
    e.blocking_reason := 'waiting_for_worker';
    e.attempt_state := 'attempt_interrupted';
    perform ff__store(e);
    perform ff__wake_lane(e.lane_id);
    return e;
end
$$;
