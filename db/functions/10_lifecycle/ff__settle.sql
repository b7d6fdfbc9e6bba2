-- The only way an execution becomes, or stays, runnable: decides where it waits. In memory; the caller stores e.
-- First match: operator hold stays; a delay in the future (p_reason, else as it stands, else by attempt_state);
-- ready, which wakes the lane.
create or replace function ff__settle(e ff_exec_core, p_reason text default null) returns ff_exec_core
language plpgsql volatile
as $$
begin
    e.lifecycle_phase := 'runnable';
    e.ownership_state := 'unowned';
    if e.eligibility_state = 'blocked_by_operator' then
        return e;
    elsif e.delay_until_ms > e.last_mutation_at_ms then
        e.blocking_reason := case
            when p_reason is not null then p_reason
            when e.eligibility_state = 'not_eligible_until_time' then e.blocking_reason
            when e.attempt_state = 'pending_retry_attempt' then 'waiting_for_retry_backoff'
            else 'waiting_for_delay' end;
        e.eligibility_state := 'not_eligible_until_time';
    else
        e.eligibility_state := 'eligible_now';
        e.blocking_reason := 'waiting_for_worker';
        e.delay_until_ms := null;
        e.not_before_ms := null;
        perform ff__wake_lane(e.lane_id);
    end if;
    e.blocking_detail := null;
    return e;
end
$$;
