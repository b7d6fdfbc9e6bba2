-- A lane has work that needs admission from now on: its claims look for it.
create or replace function ff__limit_lane(p_lane_id text) returns void
language plpgsql volatile
as $$
begin
    update ff_lane_registry l set limited = true where l.lane_id = p_lane_id and not l.limited;
end
$$;
