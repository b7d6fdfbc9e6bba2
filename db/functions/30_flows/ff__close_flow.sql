-- The end of an operation on a flow's graph (ff__open_flow): dispatches what has queued, its own ends and those of others
-- who met a busy flow, and ends the flow if nothing in it lives. The lock stays until the transaction ends; a later
-- call in it is an operation of its own.
create or replace function ff__close_flow(p_flow_id uuid, p_max_edges int default 1000) returns void
language plpgsql volatile
as $$
begin
    if exists (select from ff_flow_dispatch q where q.flow_id = p_flow_id) then
        perform ff__dispatch_flow(p_flow_id, p_max_edges);
    else
        perform ff__end_flow(p_flow_id);
    end if;
    perform set_config('ff.flow', '', true);
end
$$;
