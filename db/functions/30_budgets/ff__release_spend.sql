-- Gives back what an execution has spent of a budget since the last reset, never more than is there, and forgets its
-- ledger. The caller holds the budget. Returns in how many dimensions something was given back.
create or replace function ff__release_spend(b ff_budget, p_execution_id uuid) returns int
language plpgsql volatile
as $$
declare
    v_count int;
begin
    with gone as (
        delete from ff_budget_usage_by_exec l where l.budget_id = b.budget_id and l.execution_id = p_execution_id
        returning l.dimension, l.reset_epoch, l.delta_total
    ), given as (
        update ff_budget_usage u set current_value = greatest(0, u.current_value - g.delta_total)
          from gone g
         where u.budget_id = b.budget_id and u.dimension = g.dimension and g.reset_epoch = b.reset_epoch
        returning u.dimension
    )
    select count(*) into v_count from given;
    return v_count;
end
$$;
