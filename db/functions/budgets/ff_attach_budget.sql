-- Locks: the execution; or the flow, then its members in the order of their ids. Repeatable: already_attached.
create or replace function ff_attach_budget(
    p_budget_id text, p_execution_id text default null, p_flow_id uuid default null, out outcome text
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    v_ids uuid[];
    v_full text;
    f ff_flow_core;
    e ff_exec;
    v_budgets text[];
begin
    perform ff__check_target(p_execution_id, p_flow_id);
    if p_execution_id is not null then
        v_id := ff__execution_uuid(p_execution_id);
    end if;
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    elsif not exists (select from ff_budget b where b.budget_id = p_budget_id) then
        perform ff__raise_no_budget(p_budget_id);
    end if;
    if p_flow_id is not null then
        f := ff__lock_flow(p_flow_id);
        v_budgets := f.budget_ids;
    else
        e := ff__open(v_id);
        if e.execution_id is null then
            perform ff__raise_not_found(p_execution_id);
        end if;
        v_budgets := (select c.budget_ids from ff_execution c where c.execution_id = e.execution_id);
    end if;
    outcome := case when p_budget_id = any (v_budgets) then 'already_attached' else 'attached' end;
    if outcome = 'attached' and cardinality(v_budgets) >= 16 then
        perform ff__invalid('p_budget_id', 'is one too many: at most 16 can be attached');
    elsif outcome = 'attached' and p_flow_id is not null then
        if f.public_flow_state = 'cancelled' then
            perform ff__raise_flow_over(f);
        end if;
        v_ids := array(select c.execution_id from ff_execution c
                        where c.flow_id = p_flow_id and c.terminal_at_ms is null
                        order by c.execution_id for no key update);
        select array_agg(c.execution_id),
               min(ff__wire_id(c.partition_key, c.execution_id)) filter (where cardinality(c.budget_ids) >= 16)
          into v_ids, v_full
          from ff_execution c
         where c.execution_id = any (v_ids) and not coalesce(p_budget_id = any (c.budget_ids), false);
        if v_full is not null then
            perform ff__invalid('p_budget_id', 'is one too many for a member: at most 16 can be attached',
                                jsonb_build_object('execution_id', v_full));
        end if;
        perform ff__set_budgets(v_ids, p_budget_id, true, ff__now_ms());
        update ff_flow_core x
           set budget_ids = array_append(x.budget_ids, p_budget_id), last_mutation_at_ms = ff__now_ms()
         where x.flow_id = p_flow_id;
    elsif outcome = 'attached' then
        if e.lifecycle_phase = 'terminal' then
            perform ff__raise_already_terminal(e);
        end if;
        perform ff__set_budgets(array[e.execution_id], p_budget_id, true, e.now_ms);
    end if;
    if p_flow_id is not null then
        perform ff__close_flow(p_flow_id);
    end if;
end
$$;

comment on function ff_attach_budget(text, text, uuid) is
$$Attaches a budget to an execution, or to a flow: to all its members that have not ended, and to later members without
budgets of their own. An execution cannot be claimed while one of its budgets is breached, or strict and used up;
running attempts continue. At most 16 budgets.

Outcomes: outcome = attached | already_attached
Errors: invalid_input, invalid_execution_id, budget_not_found, execution_not_found, flow_not_found
Errors: execution_already_terminal, flow_already_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin
