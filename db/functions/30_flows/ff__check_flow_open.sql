-- A worker's verb that would make a member wait: its flow must not be cancelled together with its members. Errors:
-- flow_cancelled.
create or replace function ff__check_flow_open(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    if ff__flow_cancelled(e.flow_id) then
        perform ff__raise('flow_cancelled', format('flow %s was cancelled', e.flow_id),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'flow_id', e.flow_id));
    end if;
end
$$;
