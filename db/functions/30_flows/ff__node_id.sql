-- The id that a node of ff_submit_flow asks for. Errors: invalid_execution_id, partition_mismatch.
create or replace function ff__node_id(p_flow_id uuid, p_execution_id text) returns uuid
language plpgsql stable
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if v_id is null then
        perform ff__raise('invalid_execution_id', 'the partition is not the last byte of the uuid',
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    perform ff__check_partition(p_flow_id, v_id);
    return v_id;
end
$$;
