-- Refuses a change of the graph of a flow that is over. Errors: flow_already_terminal.
create or replace function ff__flow_over(f ff_flow_core) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('flow_already_terminal', format('flow %s is %s', f.flow_id, f.public_flow_state),
                      jsonb_build_object('flow_id', f.flow_id, 'public_flow_state', f.public_flow_state));
end
$$;
