-- Whether an execution has spent of a budget that takes it back at the end, and has not given it back yet
-- (ff_sweep_terminal_spend). Such a one is not trimmed.
create or replace function ff__owes_spend(p_execution_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from ff_budget_usage_by_exec l join ff_budget b on b.budget_id = l.budget_id
                    where l.execution_id = p_execution_id and b.release_on_terminal);
end
$$;
