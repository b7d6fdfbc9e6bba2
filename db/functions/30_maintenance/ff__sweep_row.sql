-- What a step does with one row, looked at again under its lock: done; idle, if there was nothing to do any more; busy, if
-- somebody else has it. Locks the execution, without waiting.
create or replace function ff__sweep_row(p_name text, p_key text) returns text
language plpgsql volatile
as $$
declare
    v_id uuid;
    e ff_exec;
    s ff_suspension;
begin
    if p_name = 'sweep_workers' then
        return ff__sweep_worker(p_key);
    elsif p_name = 'project_flows' then
        return ff__project_flow(p_key::uuid);
    elsif p_name in ('sweep_budget_resets', 'sweep_budget_breaches', 'sweep_terminal_spend') then
        return ff__sweep_budget(p_name, p_key);
    end if;
    v_id := p_key::uuid;
    if p_name = 'sweep_waitpoints' then
        v_id := (select w.execution_id from ff_waitpoint w where w.waitpoint_id = v_id);
    end if;
    e := ff__try_open(v_id);
    if e.execution_id is null then
        return case when exists (select from ff_exec_core c where c.execution_id = v_id) then 'busy' else 'idle' end;
    end if;
    case p_name
        when 'sweep_expired_leases' then
            if e.ownership_state <> 'leased' then
                return 'idle';
            elsif e.lease_expires_at_ms > e.now_ms then
                -- Renewed since: found again when the new expiry comes.
                update ff_exec_core c set lease_check_at_ms = c.lease_expires_at_ms where c.execution_id = e.execution_id;
                return 'idle';
            end if;
            perform ff__mark_expired(e);
        when 'sweep_attempt_timeouts' then
            if (e.lifecycle_phase = 'active' and e.attempt_timeout_at_ms <= e.now_ms) is not true then
                return 'idle';
            end if;
            perform ff__expire_attempt(e);
        when 'sweep_deadlines' then
            if (e.lifecycle_phase <> 'terminal' and e.deadline_at_ms <= e.now_ms) is not true then
                return 'idle';
            end if;
            perform ff__expire_deadline(e);
        when 'sweep_delayed' then
            if e.eligibility_state <> 'not_eligible_until_time' or e.delay_until_ms > e.now_ms then
                return 'idle';
            end if;
            perform ff__requeue(e);
        when 'sweep_suspensions' then
            if e.lifecycle_phase <> 'suspended' then
                return 'idle';
            end if;
            s := ff__open_suspension(e);
            if (s.timeout_at_ms <= e.now_ms) is not true then
                return 'idle';
            end if;
            perform ff__expire_suspension(e, s);
        when 'sweep_waitpoints' then
            return case when ff__expire_waitpoint(e, p_key::uuid) then 'done' else 'idle' end;
        when 'sweep_admissions' then
            return case when ff__let_go(e) then 'done' else 'idle' end;
        when 'sweep_claim_grants' then
            return case when ff__expire_grant(e) then 'done' else 'idle' end;
    end case;
    return 'done';
end
$$;
