-- New members joined a flow that the caller holds: its counts, and if it had ended it is open again.
create or replace function ff__grow_flow(p_flow_id uuid, p_members int, p_now_ms bigint) returns ff_flow_core
language plpgsql volatile
as $$
declare
    f ff_flow_core;
begin
    update ff_flow_core x
       set node_count = x.node_count + p_members, live_members = x.live_members + p_members,
           graph_revision = x.graph_revision + p_members, last_mutation_at_ms = p_now_ms
     where x.flow_id = p_flow_id
    returning x.* into f;
    perform ff__reopen_flow(f, p_now_ms);
    return f;
end
$$;
