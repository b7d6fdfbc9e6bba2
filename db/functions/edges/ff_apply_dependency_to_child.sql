-- Locks: the flow, the child (waits for them). Repeatable.
create or replace function ff_apply_dependency_to_child(
    p_flow_id uuid,
    p_edge_id uuid,
    out outcome text,
    out unsatisfied_count int,
    out group_state text,
    out child_public_state text
)
language plpgsql volatile security definer
as $$
declare
    a record;
begin
    if p_edge_id is null then
        perform ff__invalid('p_edge_id', 'must not be null');
    end if;
    a := ff__apply_edge(ff__lock_flow(p_flow_id), p_edge_id);
    outcome := a.outcome;
    unsatisfied_count := a.unsatisfied_count;
    group_state := a.group_state;
    child_public_state := a.child_public_state;
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_apply_dependency_to_child(uuid, uuid) is
$$Applies a staged edge: the downstream execution waits, unless it is already running. If the upstream has ended, its
outcome is applied immediately. unsatisfied_count: number of edges of the downstream that have not succeeded.

Outcomes: outcome = applied | already_applied
Outcomes: group_state = pending | satisfied | impossible | cancelled
Errors: invalid_input, flow_not_found, edge_not_found, flow_already_terminal, execution_already_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin
