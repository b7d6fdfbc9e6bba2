-- Runs one step of maintenance by its name in ff_reconciler.
create or replace function ff__run_step(p_name text, p_limit int) returns ff_step_run
language plpgsql volatile
as $$
declare
    s record;
begin
    case p_name
        when 'sweep_expired_leases' then s := @extschema@.ff_sweep_expired_leases(p_limit);
        when 'sweep_attempt_timeouts' then s := @extschema@.ff_sweep_attempt_timeouts(p_limit);
        when 'sweep_deadlines' then s := @extschema@.ff_sweep_deadlines(p_limit);
        when 'sweep_delayed' then s := @extschema@.ff_sweep_delayed(p_limit);
        when 'sweep_suspensions' then s := @extschema@.ff_sweep_suspensions(p_limit);
        when 'sweep_waitpoints' then s := @extschema@.ff_sweep_waitpoints(p_limit);
        when 'drain_cancel_backlog' then s := @extschema@.ff_drain_cancel_backlog(p_limit);
        when 'drain_sibling_cancels' then s := @extschema@.ff_drain_sibling_cancels(p_limit);
        when 'dispatch_completions' then s := @extschema@.ff_dispatch_completions(p_limit);
        when 'sweep_claim_grants' then s := @extschema@.ff_sweep_claim_grants(p_limit);
        when 'sweep_admissions' then s := @extschema@.ff_sweep_admissions(p_limit);
        when 'sweep_budget_resets' then s := @extschema@.ff_sweep_budget_resets(p_limit);
        when 'sweep_budget_breaches' then s := @extschema@.ff_sweep_budget_breaches(p_limit);
        when 'sweep_terminal_spend' then s := @extschema@.ff_sweep_terminal_spend(p_limit);
        when 'project_flows' then s := @extschema@.ff_project_flows(p_limit);
        when 'sweep_workers' then s := @extschema@.ff_sweep_workers(p_limit);
        when 'sweep_expired' then s := @extschema@.ff_sweep_expired(p_limit);
        when 'trim_retention' then s := @extschema@.ff_trim_retention(p_limit => p_limit);
        when 'trim_streams' then s := @extschema@.ff_trim_streams(p_limit);
        when 'trim_events' then s := @extschema@.ff_trim_events(p_limit);
        when 'fire_schedules' then s := @extschema@.ff_fire_schedules(p_limit);
    end case;
    return (p_name, s.processed, s.errors, s.more, null)::ff_step_run;
end
$$;
