-- ff__open_flow for an id that must exist. Errors: invalid_input (NULL), flow_not_found.
create or replace function ff__lock_flow(p_flow_id uuid) returns ff_flow_core
language plpgsql volatile
as $$
declare
    f ff_flow_core;
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    end if;
    f := ff__open_flow(p_flow_id);
    if f.flow_id is null then
        perform ff__raise('flow_not_found', 'no such flow', jsonb_build_object('flow_id', p_flow_id));
    end if;
    return f;
end
$$;
