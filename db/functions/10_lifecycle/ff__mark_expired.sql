-- A lease ran out: the row becomes reclaimable and enters the ready index. The fence stays on it, so that the holder
-- hears lease_expired.
create or replace function ff__mark_expired(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    e := ff__emit(e, 'lease', 'expired', 'ttl');
    update ff_execution c set
        state = 'lease_expired', ready_in = case when not c.granted and not ff__flow_building(c.flow_id) then c.queue_id end,
        due_at_ms = (select g.expires_at_ms from ff_claim_grant g where c.granted and g.execution_id = c.execution_id), last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms,
        last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    perform ff__wake_lane(e.lane_id);
    if e.limited then
        perform ff__free_slot(e, false);
    end if;
end
$$;
