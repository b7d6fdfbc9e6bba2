-- Locks: the execution (waits for it). Repeatable: already_blocked.
create or replace function ff_block_execution_for_admission(
    p_execution_id text,
    p_reason text,
    p_detail text default null,
    p_not_before_ms bigint default null,
    out outcome text,
    out eligibility_state text
)
language plpgsql volatile security definer
as $$
declare
    v_place text := case p_reason when 'waiting_for_quota' then 'quota' when 'waiting_for_budget' then 'budget'
                                  when 'paused_by_operator' then 'held' end;
    v_target text := 'blocked_by_' || case v_place when 'held' then 'operator' else v_place end;
    v_policy text;
    v_budgets text[];
    e ff_exec;
begin
    perform ff__execution_uuid(p_execution_id);
    if p_reason is null then
        perform ff__invalid('p_reason', 'must not be null');
    elsif v_target is null then
        perform ff__raise('invalid_blocking_reason', 'not a reason to block for',
                          jsonb_build_object('reason', left(p_reason, 64)));
    elsif p_detail is not null then
        perform ff__check_text('p_detail', p_detail, 0, 4096);
    end if;
    perform ff__check_time('p_not_before_ms', p_not_before_ms);
    e := ff__lock_execution(p_execution_id);
    eligibility_state := v_target;
    if e.lifecycle_phase = 'terminal' then
        perform ff__raise_already_terminal(e);
    elsif e.eligibility_state = v_target then
        outcome := 'already_blocked';
        return;
    elsif e.lifecycle_phase <> 'runnable' or e.eligibility_state <> 'eligible_now' then
        perform ff__raise('execution_not_eligible', format('execution %s is %s', p_execution_id, e.public_state),
                          jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state,
                                             'lifecycle_phase', e.lifecycle_phase,
                                             'eligibility_state', e.eligibility_state));
    end if;
    select c.quota_policy_id, c.budget_ids into v_policy, v_budgets from ff_execution c
     where c.execution_id = e.execution_id;
    if p_reason = 'waiting_for_quota' and v_policy is null or p_reason = 'waiting_for_budget' and v_budgets is null then
        perform ff__raise('invalid_blocking_reason', 'the execution has nothing of the kind attached to wait for',
                          jsonb_build_object('execution_id', p_execution_id, 'reason', p_reason));
    end if;
    outcome := 'blocked';
    update ff_execution c set
        state = ff__state_at_place(c.state, v_place), ready_in = null,
        due_at_ms = case when v_place <> 'held' then ff__max_time_ms() end, blocking_detail = p_detail,
        blocked_budget_id = case p_reason when 'waiting_for_budget'
                                          then coalesce(ff__budget_block(v_budgets), v_budgets[1]) end,
        not_before_ms = p_not_before_ms, last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms
     where c.execution_id = e.execution_id;
end
$$;

comment on function ff_block_execution_for_admission(text, text, text, bigint) is
$$Makes a ready execution unclaimable. waiting_for_quota, waiting_for_budget: parked as by a claim, until there is room
and p_not_before_ms has passed; it must have a policy or budget. paused_by_operator: held until ff_unblock_execution.

Outcomes: outcome = blocked | already_blocked
Outcomes: eligibility_state = blocked_by_quota | blocked_by_budget | blocked_by_operator
Errors: invalid_input, invalid_execution_id, invalid_blocking_reason, execution_not_found, execution_already_terminal
Errors: execution_not_eligible$$;
-- grant: ff_operator, ff_admin
