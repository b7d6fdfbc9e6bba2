-- The end of an attempt: its row and its stream.
-- p_op is what a replay must ask for: complete | fail | cancel by the lease holder, override | expire | reclaim
-- otherwise. What the attempt left open is closed with p_close_reason. The caller moves the execution on, in
-- ff__terminate, ff__requeue or ff__lease, which also emit the end of the lease.
create or replace function ff__end_attempt(
    e ff_exec,
    p_op text,
    p_state text,
    p_outcome text,
    p_failure_reason text default null,
    p_failure_category text default null,
    p_classification text default null,
    p_result bytea default null,
    p_result_encoding text default null,
    p_release_detail jsonb default null,
    p_close_reason text default 'attempt_ended'
) returns ff_exec
language plpgsql volatile
as $$
begin
    if e.loose_ends then
        e := ff__tie_loose_ends(e, p_close_reason, case when p_close_reason like 'timed_out%' then 'suspension_timeout'
                                                        else ff__close_reason(p_outcome) end);
    end if;
    if e.lease_id is null then
        -- Paused: the record of the pause stays, its holder may still replay it.
        update ff_attempt a set
            state = p_state, outcome = p_outcome, ended_at_ms = e.now_ms,
            failure_reason = p_failure_reason, failure_category = p_failure_category, classification = p_classification
         where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index;
        return e;
    end if;
    update ff_attempt a set
        state = p_state, outcome = p_outcome, ended_at_ms = e.now_ms,
        failure_reason = p_failure_reason, failure_category = p_failure_category, classification = p_classification,
        result = p_result, result_encoding = p_result_encoding,
        release_op = p_op, release_lease_id = e.lease_id, release_lease_epoch = e.lease_epoch,
        release_at_ms = e.now_ms, release_detail = p_release_detail
     where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index;
    return e;
end
$$;
