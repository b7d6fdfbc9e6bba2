-- Raises execution_not_in_flow, with the flow it is really in.
create or replace function ff__not_in_flow(p_flow_id uuid, p_execution_id text, p_real uuid, p_which text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_in_flow', format('execution %s is not a member of flow %s', p_execution_id, p_flow_id),
                      jsonb_build_object('execution_id', p_execution_id, 'which', p_which, 'flow_id', p_real));
end
$$;
