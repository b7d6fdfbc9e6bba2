-- An execution that is locked and parked is settled; one that another of its budgets stops waits for that one from now
-- on. False: there is none, it is not parked, or its time has not come (p_timed), or what it waits for still says no.
create or replace function ff__let_go(e ff_exec, p_timed boolean default true) returns boolean
language plpgsql volatile
as $$
declare
    v_not_before bigint;
    v_budgets text[];
    v_waits_for text;
    v_next text;
begin
    select c.not_before_ms, c.budget_ids, c.blocked_budget_id into v_not_before, v_budgets, v_waits_for
      from ff_exec_core c where c.execution_id = e.execution_id;
    if (e.eligibility_state in ('blocked_by_quota', 'blocked_by_budget')) is not true
       or p_timed and v_not_before > e.now_ms then
        return false;
    elsif e.eligibility_state = 'blocked_by_budget' then
        v_next := ff__budget_block(v_budgets);
        if v_next = v_waits_for then
            return false;
        elsif v_next is not null then
            update ff_exec_core c set blocked_budget_id = v_next, blocking_detail = v_next
             where c.execution_id = e.execution_id;
            return true;
        end if;
    end if;
    perform ff__requeue(e);
    return true;
end
$$;
