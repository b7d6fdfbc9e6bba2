-- The terminal body: the only way into terminal. The attempt, if one was open, has been ended. Writes the row, the one
-- completion event, and deletes a grant. Returns the row as stored.
create or replace function ff__terminate(
    e ff_exec_core,
    p_outcome text,
    p_reason text default null,
    p_category text default null,
    p_by text default null
) returns ff_exec_core
language plpgsql volatile
as $$
begin
    if e.lifecycle_phase <> 'active' then
        -- A live lease leaves no grant behind.
        delete from ff_claim_grant g where g.execution_id = e.execution_id;
    end if;
    e.lifecycle_phase := 'terminal';
    e.ownership_state := 'unowned';
    e.eligibility_state := 'not_applicable';
    e.blocking_reason := 'none';
    e.blocking_detail := null;
    e.terminal_outcome := p_outcome;
    e.attempt_state := case e.total_attempt_count when 0 then 'none' else 'attempt_terminal' end;
    e.terminal_at_ms := e.last_mutation_at_ms;
    e.delay_until_ms := null;
    e.not_before_ms := null;
    e.lease_revoke_reason := null;
    if p_outcome = 'cancelled' then
        e.cancellation_reason := p_reason;
        e.cancelled_by := p_by;
    elsif p_outcome <> 'success' then
        e.failure_reason := p_reason;
        e.failure_category := p_category;
    end if;
    perform ff__store(e);
    perform ff__emit(e, 'completion', p_outcome, p_reason, p_outcome);
    return e;
end
$$;
