-- What firing would have to change in the lane of a schedule, which must not wait: registers an unknown lane, and marks
-- it if the executions need admission (p_limited). Neither is ever taken back.
create or replace function ff__schedule_lane(p_lane_id text, p_now_ms bigint, p_limited boolean) returns void
language plpgsql volatile
as $$
begin
    insert into ff_lane_registry (lane_id, state, state_changed_at_ms, registered_at_ms, registered_by)
    values (p_lane_id, 'active', p_now_ms, p_now_ms, 'create_schedule')
    on conflict do nothing;
    if p_limited then
        perform ff__limit_lane(p_lane_id);
    end if;
end
$$;
