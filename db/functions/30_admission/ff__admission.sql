-- Asks whether an execution that is locked and could be claimed may start: its budgets first, unlocked, then its quota
-- policy. p_hold_ms: reserves the slot for that long instead of for the lease that is about to be minted. A paused or
-- crashed attempt is charged a slot, not a start. admitted is empty if it may not, and outcome says why. Never waits.
create or replace function ff__admission(e ff_exec, p_hold_ms bigint) returns ff_admission
language plpgsql volatile
as $$
declare
    v_policy text;
    v_budgets text[];
    v_fresh boolean := e.lifecycle_phase = 'runnable' and e.attempt_state <> 'attempt_interrupted';
    a ff_admission;
begin
    select c.quota_policy_id, c.budget_ids into v_policy, v_budgets from ff_exec_core c
     where c.execution_id = e.execution_id;
    if v_budgets is not null then
        a.budget_id := ff__budget_block(v_budgets);
        if a.budget_id is not null then
            a.admitted := '{}'::uuid[];
            a.outcome := 'budget_exceeded';
            a.now_ms := ff__now_ms();
            a.retry_after_ms := (select b.next_reset_at_ms - a.now_ms from ff_budget b
                                  where b.budget_id = a.budget_id and b.next_reset_at_ms > a.now_ms);
            return a;
        end if;
    end if;
    if v_policy is null then
        a.admitted := array[e.execution_id];
        a.outcome := 'admitted';
        a.now_ms := ff__now_ms();
        return a;
    end if;
    a := ff__admit(v_policy, array[e.execution_id], array[ff__next_attempt(e)], array[v_fresh], p_hold_ms, false);
    if a.outcome = 'already_admitted' and p_hold_ms is not null then
        -- A slot that was asked for before: held for at least as long.
        update ff_quota_reservation r set expires_at_ms = a.now_ms + p_hold_ms
         where r.quota_policy_id = v_policy and r.execution_id = e.execution_id
           and r.expires_at_ms < a.now_ms + p_hold_ms;
    end if;
    return a;
end
$$;
