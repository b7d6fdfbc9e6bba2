-- Locks: the execution (waits for it). Repeatable: not_blocked.
create or replace function ff_unblock_execution(
    p_execution_id text, p_expected_reason text default null, out outcome text, out public_state text
)
language plpgsql volatile security definer
as $$
declare
    v_reason text;
    e ff_exec := ff__lock_execution(p_execution_id);
begin
    outcome := 'not_blocked';
    public_state := e.public_state;
    if e.lifecycle_phase <> 'runnable'
       or e.eligibility_state not in ('blocked_by_quota', 'blocked_by_budget', 'blocked_by_operator') then
        return;
    end if;
    v_reason := (select c.blocking_reason from ff_exec_core c where c.execution_id = e.execution_id);
    if v_reason <> p_expected_reason then
        perform ff__raise('execution_not_eligible', format('execution %s is blocked by %s', p_execution_id, v_reason),
                          jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state,
                                             'eligibility_state', e.eligibility_state, 'blocking_reason', v_reason));
    end if;
    e.eligibility_state := 'eligible_now'; -- no longer held
    outcome := 'unblocked';
    public_state := ff__settle(e);
end
$$;

comment on function ff_unblock_execution(text, text) is
$$Unblocks an execution that is held by an operator or waits for a quota policy or budget, even without room: it is
settled, and a claim checks admission again. p_expected_reason: only if this is its blocking reason.

Outcomes: outcome = unblocked | not_blocked
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_not_eligible$$;
-- grant: ff_operator, ff_admin
