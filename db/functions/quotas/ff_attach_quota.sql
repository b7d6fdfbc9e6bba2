-- Locks: the flow and then its members in the order of their ids, or the execution (waits for them). Repeatable:
-- already_attached.
create or replace function ff_attach_quota(
    p_quota_policy_id text, p_execution_id text default null, p_flow_id uuid default null, out outcome text
)
language plpgsql volatile security definer
as $$
declare
    v_ids uuid[];
    v_now bigint;
    e ff_exec;
    f ff_flow_core;
begin
    perform ff__check_policy_id('p_quota_policy_id', p_quota_policy_id);
    perform ff__check_target(p_execution_id, p_flow_id);
    if p_execution_id is not null then
        perform ff__execution_uuid(p_execution_id);
    end if;
    if not exists (select from ff_quota_policy q where q.quota_policy_id = p_quota_policy_id) then
        perform ff__raise_no_quota_policy(p_quota_policy_id);
    end if;
    outcome := 'already_attached';
    if p_flow_id is null then
        e := ff__lock_execution(p_execution_id);
        if ff__quota_attached(p_quota_policy_id, (select c.quota_policy_id from ff_execution c
                                                   where c.execution_id = e.execution_id)) then
            return;
        elsif e.lifecycle_phase = 'terminal' then
            perform ff__raise_already_terminal(e);
        end if;
        v_ids := array[e.execution_id];
        v_now := e.now_ms;
    else
        f := ff__lock_flow(p_flow_id);
        if ff__quota_attached(p_quota_policy_id, f.quota_policy_id) then
            perform ff__close_flow(p_flow_id);
            return;
        elsif f.public_flow_state = 'cancelled' then
            perform ff__raise_flow_over(f);
        end if;
        v_ids := array(select c.execution_id from ff_execution c
                        where c.flow_id = p_flow_id and c.terminal_at_ms is null and c.quota_policy_id is null
                        order by c.execution_id for no key update);
        v_now := ff__now_ms();
        update ff_flow_core x set quota_policy_id = p_quota_policy_id, last_mutation_at_ms = v_now
         where x.flow_id = p_flow_id;
    end if;
    outcome := 'attached';
    update ff_execution c
       set quota_policy_id = p_quota_policy_id, limited = true, unadmitted_lease_id = c.lease_id,
           last_mutation_at_ms = v_now
     where c.execution_id = any (v_ids);
    perform ff__change_queue(v_ids);
    if p_flow_id is not null then
        perform ff__close_flow(p_flow_id);
    end if;
end
$$;

comment on function ff_attach_quota(text, text, uuid) is
$$Attaches a quota policy to an execution, or to a flow and all its later members: claims enforce it. Present members
that have not ended and have no policy get it too. Running attempts continue, and are counted.

Outcomes: outcome = attached | already_attached
Errors: invalid_input, invalid_execution_id, quota_policy_not_found, execution_not_found, flow_not_found
Errors: quota_attach_conflict, execution_already_terminal, flow_already_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin

-- Whether the quota policy is already attached; false if none is. Errors: quota_attach_conflict
-- (another).
create or replace function ff__quota_attached(p_quota_policy_id text, p_attached text) returns boolean
language plpgsql stable
as $$
begin
    if p_attached <> p_quota_policy_id then
        perform ff__raise('quota_attach_conflict', format('quota policy %s is attached', p_attached),
                          jsonb_build_object('attached', p_attached, 'quota_policy_id', p_quota_policy_id));
    end if;
    return p_attached is not null;
end
$$;
