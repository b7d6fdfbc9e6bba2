-- A new period of a budget that the caller holds. The ledger of the past ones has lost its meaning and goes; rows
-- that a trim is deleting are left to it.
create or replace function ff__reset_budget(b ff_budget, p_next_reset_at_ms bigint, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    update ff_budget x
       set reset_epoch = x.reset_epoch + 1, reset_count = least(x.reset_count, 2147483646) + 1,
           last_reset_at_ms = p_now_ms, next_reset_at_ms = p_next_reset_at_ms, last_breach_at_ms = null,
           last_breach_dim = null, breached = false, updated_at_ms = p_now_ms
     where x.budget_id = b.budget_id;
    update ff_budget_usage u set current_value = 0, lowered = false where u.budget_id = b.budget_id;
    delete from ff_budget_usage_by_exec l
     where l.ctid = any (array(select x.ctid from ff_budget_usage_by_exec x
                                where x.budget_id = b.budget_id for update skip locked));
    delete from ff_budget_breach x where x.budget_id = b.budget_id;
end
$$;
