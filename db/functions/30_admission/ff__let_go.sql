-- An execution that is locked and parked is settled; one that another of its budgets stops waits for that one from now
-- on. False: there is none, it is not parked, its time has not come (p_timed), or what it waits for still denies it.
create or replace function ff__let_go(e ff_exec, p_timed boolean default true) returns boolean
language plpgsql volatile
as $$
declare
    v_next text;
    c ff_execution;
begin
    select x.* into c from ff_execution x where x.execution_id = e.execution_id;
    if (e.eligibility_state in ('blocked_by_quota', 'blocked_by_budget')) is not true
       or p_timed and c.not_before_ms > e.now_ms then
        return false;
    elsif e.eligibility_state = 'blocked_by_budget' then
        v_next := ff__budget_block(c.budget_ids);
        if v_next = c.blocked_budget_id then
            return false;
        elsif v_next is not null then
            update ff_execution x set blocked_budget_id = v_next, blocking_detail = v_next
             where x.execution_id = e.execution_id;
            return true;
        end if;
    end if;
    perform ff__requeue(e);
    return true;
end
$$;
