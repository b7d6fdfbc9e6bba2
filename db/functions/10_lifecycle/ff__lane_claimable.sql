-- Whether a lane hands out work: it is known, and neither paused nor disabled. Errors: invalid_lane_id.
create or replace function ff__lane_claimable(p_lane_id text) returns boolean
language plpgsql stable
as $$
declare
    v_state text;
begin
    select l.state into v_state from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
        return false;
    end if;
    return v_state in ('active', 'draining');
end
$$;
