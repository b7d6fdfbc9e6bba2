-- Wakes the lanes on which a flow has work that is ready.
create or replace function ff__wake_members(p_flow_id uuid) returns void
language plpgsql volatile
as $$
declare
    v_lane text;
begin
    for v_lane in
        select distinct c.lane_id from ff_exec_core c
         where c.flow_id = p_flow_id and c.blocking_reason = 'waiting_for_worker' order by c.lane_id
    loop
        perform ff__wake_lane(v_lane);
    end loop;
end
$$;
