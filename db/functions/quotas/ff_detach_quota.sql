-- Locks: the flow or the execution (waits for it). Repeatable: not_attached.
create or replace function ff_detach_quota(
    p_execution_id text default null, p_flow_id uuid default null, out outcome text
)
language plpgsql volatile security definer
as $$
declare
    v_policy text;
    v_freed boolean;
    e ff_exec;
    f ff_flow_core;
begin
    perform ff__check_target(p_execution_id, p_flow_id);
    outcome := 'not_attached';
    if p_flow_id is not null then
        f := ff__lock_flow(p_flow_id);
        if f.quota_policy_id is not null then
            outcome := 'detached';
            update ff_flow_core x set quota_policy_id = null, last_mutation_at_ms = ff__now_ms()
             where x.flow_id = p_flow_id;
        end if;
        perform ff__close_flow(p_flow_id);
        return;
    end if;
    e := ff__lock_execution(p_execution_id);
    v_policy := (select c.quota_policy_id from ff_execution c where c.execution_id = e.execution_id);
    if v_policy is null then
        return;
    elsif e.ownership_state = 'leased' and e.lease_expires_at_ms > e.now_ms then
        perform ff__raise('slot_in_use', format('execution %s runs under quota policy %s', p_execution_id, v_policy),
                          jsonb_build_object('execution_id', p_execution_id, 'quota_policy_id', v_policy));
    end if;
    outcome := 'detached';
    delete from ff_quota_reservation r
     where r.quota_policy_id = v_policy and r.execution_id = e.execution_id
    returning r.expires_at_ms > e.now_ms into v_freed;
    update ff_execution c
       set quota_policy_id = null, last_mutation_at_ms = e.now_ms,
           limited = c.budget_ids is not null
                     or exists (select from ff_quota_reservation r where r.execution_id = c.execution_id)
     where c.execution_id = e.execution_id;
    perform ff__change_queue(array[e.execution_id]);
    if e.eligibility_state = 'blocked_by_quota' then
        perform ff__settle(e);
    elsif e.eligibility_state = 'eligible_now' or ff__reclaimable(e) then
        perform ff__notify_lane(e.lane_id);
    end if;
    if v_freed then
        perform ff__unpark_peers(v_policy, 1);
    end if;
end
$$;

comment on function ff_detach_quota(text, uuid) is
$$Detaches the quota policy of an execution, which is settled if it waits for the policy. Rejected while it runs. For a
flow: applies to later members; present members keep theirs.

Outcomes: outcome = detached | not_attached
Errors: invalid_input, invalid_execution_id, execution_not_found, flow_not_found, slot_in_use$$;
-- grant: ff_producer, ff_operator, ff_admin
