-- Puts a budget on executions, or takes it off: the only place that writes it after they were created. The caller has
-- locked them.
create or replace function ff__set_budgets(
    p_execution_ids uuid[], p_budget_id text, p_attach boolean, p_now_ms bigint
) returns void
language plpgsql volatile
as $$
begin
    update ff_execution c
       set budget_ids = case when p_attach then array_append(c.budget_ids, p_budget_id)
                             else nullif(array_remove(c.budget_ids, p_budget_id), '{}') end,
           limited = p_attach or c.quota_policy_id is not null
                     or cardinality(array_remove(c.budget_ids, p_budget_id)) > 0
                     or exists (select from ff_quota_reservation r where r.execution_id = c.execution_id),
           last_mutation_at_ms = p_now_ms
     where c.execution_id = any (p_execution_ids);
    perform ff__change_queue(p_execution_ids);
end
$$;
