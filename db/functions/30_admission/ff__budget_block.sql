-- The first of these budgets that lets nothing start: breached or, in strict mode, with a dimension at its hard limit.
-- NULL: none does; a budget that is gone stops nobody. Reads, locks nothing.
create or replace function ff__budget_block(p_budget_ids text[]) returns text
language plpgsql stable
as $$
begin
    return (
        select b.budget_id
          from unnest(p_budget_ids) with ordinality x(budget_id, n)
          join ff_budget b on b.budget_id = x.budget_id
         where b.breached
            or b.enforcement_mode = 'strict'
               and exists (select from ff_budget_usage u
                            where u.budget_id = b.budget_id and u.hard_limit > 0 and u.current_value >= u.hard_limit)
         order by x.n limit 1);
end
$$;
