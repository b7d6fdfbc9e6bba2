-- Raises budget_not_found.
create or replace function ff__no_budget(p_budget_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('budget_not_found', format('no budget %s', left(p_budget_id, 200)),
                      jsonb_build_object('budget_id', left(p_budget_id, 200)));
end
$$;
