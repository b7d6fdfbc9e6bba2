-- A submission enters a lane: registers an unknown one, refuses a draining or disabled one. Reads the lane unlocked.
-- Returns whether a worker waits for it (wake_armed); a new lane starts so, since its workers may poll it already. Errors: lane_not_accepting.
create or replace function ff__open_lane(p_lane_id text, p_now_ms bigint) returns boolean
language plpgsql volatile
as $$
declare
    v_state text;
    v_armed boolean;
begin
    select l.state, l.wake_armed into v_state, v_armed from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        insert into ff_lane_registry (lane_id, state, state_changed_at_ms, registered_at_ms, registered_by)
        values (p_lane_id, 'active', p_now_ms, p_now_ms, 'create_execution')
        on conflict do nothing;
        if found then
            return true;
        end if;
        select l.state, l.wake_armed into v_state, v_armed from ff_lane_registry l where l.lane_id = p_lane_id;
    end if;
    if v_state in ('draining', 'disabled') then
        perform ff__raise('lane_not_accepting', format('lane %s is %s', p_lane_id, v_state),
                          jsonb_build_object('lane_id', p_lane_id, 'state', v_state));
    end if;
    return v_armed;
end
$$;
