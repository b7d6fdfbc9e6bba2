-- Locks a budget (waits for it). Errors: invalid_input (NULL), budget_not_found.
create or replace function ff__lock_budget(p_budget_id text) returns ff_budget
language plpgsql volatile
as $$
declare
    b ff_budget;
begin
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    end if;
    select x.* into b from ff_budget x where x.budget_id = p_budget_id for update;
    if b.budget_id is null then
        perform ff__no_budget(p_budget_id);
    end if;
    return b;
end
$$;
