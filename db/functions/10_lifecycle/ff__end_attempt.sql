-- The end of an attempt: lease given up (if there is one), attempt row ended, nothing of it left on the execution.
-- p_op is what a replay must ask for: complete | fail | cancel by the lease holder, override | expire | reclaim
-- otherwise. In memory but for the attempt row and the event; the caller stores e.
create or replace function ff__end_attempt(
    e ff_exec_core,
    p_op text,
    p_state text,
    p_outcome text,
    p_lease_reason text,
    p_timer text default null,
    p_failure_reason text default null,
    p_failure_category text default null,
    p_classification text default null,
    p_result bytea default null,
    p_result_encoding text default null,
    p_release_detail jsonb default null
) returns ff_exec_core
language plpgsql volatile
as $$
begin
    if e.lease_id is null then
        -- Paused: the record of the pause stays, its holder may still replay it.
        update ff_attempt a set
            state = p_state, outcome = p_outcome, ended_at_ms = e.last_mutation_at_ms,
            failure_reason = p_failure_reason, failure_category = p_failure_category, classification = p_classification
         where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index;
    else
        update ff_attempt a set
            state = p_state, outcome = p_outcome, ended_at_ms = e.last_mutation_at_ms,
            failure_reason = p_failure_reason, failure_category = p_failure_category, classification = p_classification,
            result = p_result, result_encoding = p_result_encoding,
            release_op = p_op, release_lease_id = e.lease_id, release_lease_epoch = e.lease_epoch,
            release_at_ms = e.last_mutation_at_ms, release_detail = p_release_detail
         where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index;
        e := ff__drop_lease(e, p_lease_reason, p_timer);
    end if;
    e.current_attempt_id := null;
    e.current_suspension_id := null;
    e.current_waitpoint_id := null;
    e.attempt_remaining_ms := null;
    return e;
end
$$;
