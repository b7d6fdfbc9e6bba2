-- A live lease is taken away: the row becomes claimable at once. The fence stays on it, so that the holder hears
-- lease_revoked; the next mint raises the epoch.
create or replace function ff__revoke(e ff_exec, p_reason text) returns void
language plpgsql volatile
as $$
begin
    e := ff__emit(e, 'lease', 'revoked', p_reason);
    update ff_execution c set
        state = 'lease_revoked', ready_in = case when not ff__flow_building(c.flow_id) then c.queue_id end, due_at_ms = null,
        lease_revoke_reason = p_reason, last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms,
        last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    perform ff__wake_lane(e.lane_id);
    if e.limited then
        perform ff__free_slot(e, false);
    end if;
end
$$;
