-- An execution that is to be a member of a flow lies in the flow's partition. Pure arithmetic. Errors:
-- partition_mismatch.
create or replace function ff__check_partition(p_flow_id uuid, p_execution_id uuid) returns void
language plpgsql stable
as $$
begin
    if ff__partition(p_flow_id) <> ff__partition(p_execution_id) then
        perform ff__raise('partition_mismatch',
                          format('the flow lies in partition %s, the execution in %s', ff__partition(p_flow_id),
                                 ff__partition(p_execution_id)),
                          jsonb_build_object('flow_id', p_flow_id, 'flow_partition', ff__partition(p_flow_id),
                                             'execution_id',
                                             ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
    end if;
end
$$;
