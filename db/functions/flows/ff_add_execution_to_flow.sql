-- Locks: the flow, the execution (waits for them). Repeatable.
create or replace function ff_add_execution_to_flow(
    p_flow_id uuid,
    p_execution_id text,
    out outcome text,
    out execution_id text,
    out node_count int,
    out graph_revision bigint
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    v_partition int := split_part(substr(p_execution_id, 5), '}', 1)::int;
    e ff_exec;
    f ff_flow_core;
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif v_partition <> ff__partition(p_flow_id) then
        perform ff__raise('partition_mismatch',
                          format('the flow lies in partition %s, the execution in %s', ff__partition(p_flow_id),
                                 v_partition),
                          jsonb_build_object('flow_id', p_flow_id, 'flow_partition', ff__partition(p_flow_id),
                                             'execution_id', p_execution_id));
    end if;
    f := ff__lock_flow(p_flow_id);
    e := ff__lock_execution(p_execution_id);
    execution_id := ff__wire_id(e.partition_key, v_id);
    if e.flow_id = p_flow_id then
        outcome := 'already_member';
    elsif e.flow_id is not null then
        perform ff__raise('already_member_of_different_flow',
                          format('execution %s is in flow %s', p_execution_id, e.flow_id),
                          jsonb_build_object('execution_id', p_execution_id, 'flow_id', e.flow_id));
    elsif f.public_flow_state = 'cancelled' then
        perform ff__raise_flow_over(f);
    elsif e.lifecycle_phase = 'terminal' then
        perform ff__raise_already_terminal(e);
    else
        outcome := 'added';
        update ff_execution c
           set flow_id = p_flow_id, joined = true,
               ready_in = case when f.public_flow_state <> 'building' then c.ready_in end,
               quota_policy_id = coalesce(c.quota_policy_id, f.quota_policy_id),
               unadmitted_lease_id = case when c.quota_policy_id is null and f.quota_policy_id is not null
                                          then e.lease_id else c.unadmitted_lease_id end,
               budget_ids = coalesce(c.budget_ids, f.budget_ids),
               limited = c.limited or f.quota_policy_id is not null or f.budget_ids is not null,
               last_mutation_at_ms = e.now_ms
         where c.execution_id = v_id;
        if not e.limited and (f.quota_policy_id is not null or f.budget_ids is not null) then
            perform ff__change_queue(array[v_id]);
        end if;
        f := ff__count_new_members(p_flow_id, 1, e.now_ms);
    end if;
    node_count := f.node_count;
    graph_revision := f.graph_revision;
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_add_execution_to_flow(uuid, text) is
$$Adds an execution to a flow permanently. The execution must be in the partition of the flow; ff_create_execution with
p_flow_id creates and adds it in one call. A flow that was completed or failed is reopened.

Outcomes: outcome = added | already_member
Errors: invalid_input, invalid_execution_id, partition_mismatch, flow_not_found, execution_not_found
Errors: already_member_of_different_flow, flow_already_terminal, execution_already_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin
