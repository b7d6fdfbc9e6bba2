-- An execution that is locked owes nothing to budgets any more: it is no longer looked at (ff_sweep_terminal_spend). Nothing
-- happens if it still does.
create or replace function ff__spend_given_back(p_execution_id uuid) returns void
language plpgsql volatile
as $$
begin
    if not ff__owes_spend(p_execution_id) then
        update ff_execution c set spends = false where c.execution_id = p_execution_id and c.spends;
    end if;
end
$$;
