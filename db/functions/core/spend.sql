-- Whether an execution has spend in a budget with release_on_terminal that is not released yet
-- (ff_sweep_terminal_spend). Such an execution is not trimmed.
create or replace function ff__has_unreturned_spend(p_execution_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from ff_budget_usage_by_exec l join ff_budget b on b.budget_id = l.budget_id
                    where l.execution_id = p_execution_id and b.release_on_terminal);
end
$$;

-- Releases the spend of an execution in a budget since the last reset, at most the current value, and deletes its
-- ledger rows. The caller holds the budget lock. Returns the number of dimensions released.
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

-- Starts a new period of a budget that the caller has locked. Deletes the ledger rows of past periods, which are
-- obsolete; rows locked by a trim are left for it.
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
