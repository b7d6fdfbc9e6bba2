-- Locks: the execution, or the flow. Repeatable: not_attached.
create or replace function ff_detach_budget(
    p_budget_id text, p_execution_id text default null, p_flow_id uuid default null, out outcome text
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    f ff_flow_core;
    e ff_exec;
begin
    perform ff__check_target(p_execution_id, p_flow_id);
    if p_execution_id is not null then
        v_id := ff__execution_uuid(p_execution_id);
    end if;
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    end if;
    outcome := 'not_attached';
    if p_flow_id is not null then
        f := ff__lock_flow(p_flow_id);
        if p_budget_id = any (f.budget_ids) then
            outcome := 'detached';
            update ff_flow_core x
               set budget_ids = nullif(array_remove(x.budget_ids, p_budget_id), '{}'),
                   last_mutation_at_ms = ff__now_ms()
             where x.flow_id = p_flow_id;
        end if;
        perform ff__close_flow(p_flow_id);
        return;
    end if;
    e := ff__open(v_id);
    if e.execution_id is null then
        perform ff__raise_not_found(p_execution_id);
    elsif exists (select from ff_execution c where c.execution_id = e.execution_id and p_budget_id = any (c.budget_ids))
    then
        outcome := 'detached';
        perform ff__set_budgets(array[e.execution_id], p_budget_id, false, e.now_ms);
        if e.eligibility_state = 'blocked_by_budget' then
            -- If another budget blocks it too, the next claim parks it again.
            perform ff__settle(e);
        elsif e.eligibility_state = 'eligible_now' or ff__reclaimable(e) then
            perform ff__notify_lane(e.lane_id);
        end if;
    end if;
end
$$;

comment on function ff_detach_budget(text, text, uuid) is
$$Detaches a budget from an execution, which becomes claimable if it waited for the budget; or from a flow, for later
members: present members keep it. Counted usage stays.

Outcomes: outcome = detached | not_attached
Errors: invalid_input, invalid_execution_id, execution_not_found, flow_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
