-- Runs one step of maintenance by its name in ff_reconciler.
create or replace function ff__run_step(
    p_name text, p_limit int, out processed int, out errors int, out more boolean
)
language plpgsql volatile
as $$
begin
    case p_name
        when 'sweep_expired_leases' then select s.* into processed, errors, more from @extschema@.ff_sweep_expired_leases(p_limit) s;
        when 'sweep_attempt_timeouts' then select s.* into processed, errors, more from @extschema@.ff_sweep_attempt_timeouts(p_limit) s;
        when 'sweep_deadlines' then select s.* into processed, errors, more from @extschema@.ff_sweep_deadlines(p_limit) s;
        when 'sweep_delayed' then select s.* into processed, errors, more from @extschema@.ff_sweep_delayed(p_limit) s;
        when 'sweep_suspensions' then select s.* into processed, errors, more from @extschema@.ff_sweep_suspensions(p_limit) s;
        when 'sweep_waitpoints' then select s.* into processed, errors, more from @extschema@.ff_sweep_waitpoints(p_limit) s;
        when 'drain_cancel_backlog' then select s.* into processed, errors, more from @extschema@.ff_drain_cancel_backlog(p_limit) s;
        when 'drain_sibling_cancels' then select s.* into processed, errors, more from @extschema@.ff_drain_sibling_cancels(p_limit) s;
        when 'dispatch_completions' then select s.* into processed, errors, more from @extschema@.ff_dispatch_completions(p_limit) s;
        when 'sweep_claim_grants' then select s.* into processed, errors, more from @extschema@.ff_sweep_claim_grants(p_limit) s;
        when 'sweep_admissions' then select s.* into processed, errors, more from @extschema@.ff_sweep_admissions(p_limit) s;
        when 'sweep_budget_resets' then select s.* into processed, errors, more from @extschema@.ff_sweep_budget_resets(p_limit) s;
        when 'sweep_budget_breaches' then select s.* into processed, errors, more from @extschema@.ff_sweep_budget_breaches(p_limit) s;
        when 'sweep_terminal_spend' then select s.* into processed, errors, more from @extschema@.ff_sweep_terminal_spend(p_limit) s;
        when 'project_flows' then select s.* into processed, errors, more from @extschema@.ff_project_flows(p_limit) s;
        when 'sweep_workers' then select s.* into processed, errors, more from @extschema@.ff_sweep_workers(p_limit) s;
        when 'sweep_expired' then select s.* into processed, errors, more from @extschema@.ff_sweep_expired(p_limit) s;
        when 'trim_retention' then
            select s.* into processed, errors, more from @extschema@.ff_trim_retention(p_limit => p_limit) s;
        when 'trim_streams' then select s.* into processed, errors, more from @extschema@.ff_trim_streams(p_limit) s;
        when 'trim_events' then select s.* into processed, errors, more from @extschema@.ff_trim_events(p_limit) s;
        when 'fire_schedules' then select s.* into processed, errors, more from @extschema@.ff_fire_schedules(p_limit) s;
    end case;
end
$$;
