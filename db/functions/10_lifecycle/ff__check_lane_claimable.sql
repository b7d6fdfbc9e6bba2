-- The lane of an execution must hand out work. Errors: lane_not_claimable.
create or replace function ff__check_lane_claimable(e ff_exec) returns void
language plpgsql stable
as $$
begin
    if not ff__lane_claimable(e.lane_id) then
        perform ff__raise('lane_not_claimable', format('lane %s hands out no work', e.lane_id),
                          jsonb_build_object('lane_id', e.lane_id,
                                             'execution_id', ff__wire_id(e.partition_key, e.execution_id)));
    end if;
end
$$;
