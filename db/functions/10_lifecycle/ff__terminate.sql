-- The terminal body: the only way into terminal. The attempt, if one was open, has been ended (ff__end_attempt).
-- One update of the execution, one event of its completion and of the end of its lease (ff__emit_end); a grant is deleted, a slot freed; a member's end is passed on in its flow;
-- children of one that did not succeed are cancelled. Whether it has any is asked in the update.
create or replace function ff__terminate(
    e ff_exec,
    p_outcome text,
    p_reason text default null,
    p_category text default null,
    p_by text default null,
    p_lease_reason text default null,
    p_timer text default null
) returns ff_exec
language plpgsql volatile
as $$
declare
    v_children boolean := false;
    v_event_id bigint;
begin
    if e.granted then
        delete from ff_claim_grant g where g.execution_id = e.execution_id;
    end if;
    if p_outcome = 'success' and e.ownership_state = 'leased' then
        -- The same with what a live lease may have set, and no more: this is the usual end.
        update ff_exec_core c set
            lifecycle_phase = 'terminal', ownership_state = 'unowned', terminal_outcome = 'success',
            attempt_state = 'attempt_terminal', current_attempt_id = null, lease_id = null, lease_ttl_ms = null,
            lease_expires_at_ms = null, lease_check_at_ms = null, worker_id = null, worker_instance_id = null,
            attempt_timeout_at_ms = null, terminal_at_ms = e.now_ms, last_transition_at_ms = e.now_ms,
            last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
         where c.execution_id = e.execution_id;
    else
        update ff_exec_core c set
            lifecycle_phase = 'terminal', ownership_state = 'unowned', eligibility_state = 'not_applicable',
            blocking_reason = 'none', blocking_detail = null, terminal_outcome = p_outcome,
            attempt_state = case c.total_attempt_count when 0 then 'none' else 'attempt_terminal' end,
            current_attempt_id = null, current_suspension_id = null, current_waitpoint_id = null,
            lease_id = null, lease_ttl_ms = null, lease_expires_at_ms = null, lease_check_at_ms = null,
            lease_revoke_reason = null, worker_id = null, worker_instance_id = null,
            reserved_until_ms = null, attempt_timeout_at_ms = null, attempt_remaining_ms = null, delay_until_ms = null,
            not_before_ms = null,
            failure_reason = case when p_outcome in ('failed', 'expired', 'skipped') then p_reason end,
            failure_category = case when p_outcome in ('failed', 'expired', 'skipped') then p_category end,
            cancellation_reason = case when p_outcome = 'cancelled' then p_reason end,
            cancelled_by = case when p_outcome = 'cancelled' then p_by end,
            terminal_at_ms = e.now_ms, last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms,
            last_event_ord = e.ord
         where c.execution_id = e.execution_id
        -- Not EXISTS: PostgreSQL may hash all of ff_child for it.
        returning p_outcome <> 'success'
                  and (coalesce((select true from ff_child k
                                  where k.parent_id = c.execution_id and not k.detached limit 1), false)
                       -- A snapshot that may be older than the lock on the execution: cannot be known.
                       or current_setting('transaction_isolation') <> 'read committed') into v_children;
    end if;
    v_event_id := ff__emit_end(e, p_lease_reason, p_timer, p_outcome, p_reason);
    if e.limited then
        perform ff__free_slot(e, true);
    end if;
    if e.flow_id is not null then
        perform ff__flow_ended(e, p_outcome, v_event_id);
    end if;
    if v_children then
        perform ff__parent_ended(e.execution_id);
    end if;
    return e;
end
$$;
