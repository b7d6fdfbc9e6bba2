-- Locks a flow (waits for it) for an operation on its graph. Until ff__close_flow the ends of its members only queue
-- (ff__flow_ended): the operation dispatches them itself, once. A row of NULLs if there is none.
create or replace function ff__open_flow(p_flow_id uuid) returns ff_flow_core
language plpgsql volatile
as $$
declare
    f ff_flow_core;
begin
    select x.* into f from ff_flow_core x where x.flow_id = p_flow_id for update;
    if f.flow_id is not null then
        perform set_config('ff.flow', p_flow_id::text, true);
    end if;
    return f;
end
$$;
