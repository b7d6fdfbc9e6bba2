-- The only way an execution becomes, or stays, runnable: decides where it waits, and writes it. p_attempt_state is what
-- the next claim finds (NULL: as it stands): pending_* leaves no open attempt, pending_retry_attempt counts a retry with
-- its failure, attempt_interrupted pauses a running one and stops its clock. p_delay_until_ms is the wake-up time.
-- First match: a member of a flow that was cancelled with its members ends cancelled; an operator's hold stays; a member
-- whose edge group is impossible ends skipped, one whose group is pending waits for it; a delay in the future, for
-- p_reason, else as it stands, else by attempt_state; ready, which wakes the lane. pending_replay_attempt wipes what the
-- last run left and arms the deadline anew, from p_replay_deadline_ms. p_closed_waitpoints: how many a resume has closed.
-- p_lease_reason, p_timer: why the lease that e holds is over, as in ff__emit_end.
-- Returns the public state.
create or replace function ff__requeue(
    e ff_exec,
    p_attempt_state text default null,
    p_delay_until_ms bigint default null,
    p_reason text default null,
    p_failure_reason text default null,
    p_failure_category text default null,
    p_replay_deadline_ms bigint default null,
    p_closed_waitpoints int default 0,
    p_lease_reason text default null,
    p_timer text default null
) returns text
language plpgsql volatile
as $$
declare
    v_hold boolean := e.eligibility_state = 'blocked_by_operator';
    v_delayed boolean := not v_hold and coalesce(p_delay_until_ms > e.now_ms, false);
    v_ended boolean := coalesce(p_attempt_state like 'pending%', false);
    v_retry boolean := coalesce(p_attempt_state = 'pending_retry_attempt', false);
    v_replay boolean := coalesce(p_attempt_state = 'pending_replay_attempt', false);
    v_deps boolean := false;
    v_verdict text;
    v_state text;
begin
    if e.flow_id is not null then
        v_verdict := ff__member_verdict(e);
        if v_verdict = 'cancelled' or v_verdict = 'impossible' and not v_hold and not v_replay then
            return ff__end_member(e, v_verdict, v_ended, p_lease_reason, p_timer);
        end if;
        v_deps := v_verdict is not null and not v_hold;
    end if;
    update ff_exec_core c set
        lifecycle_phase = 'runnable', ownership_state = 'unowned',
        eligibility_state = case when v_hold then c.eligibility_state when v_deps then 'blocked_by_dependencies'
                                 when v_delayed then 'not_eligible_until_time' else 'eligible_now' end,
        blocking_reason = case
            when v_hold then c.blocking_reason
            when v_deps then 'waiting_for_children'
            when not v_delayed then 'waiting_for_worker'
            when p_reason is not null then p_reason
            when c.eligibility_state = 'not_eligible_until_time' then c.blocking_reason
            when coalesce(p_attempt_state, c.attempt_state) = 'pending_retry_attempt' then 'waiting_for_retry_backoff'
            else 'waiting_for_delay' end,
        blocking_detail = case when v_hold then c.blocking_detail end,
        attempt_state = coalesce(p_attempt_state, c.attempt_state),
        current_attempt_id = case when not v_ended then c.current_attempt_id end,
        attempt_remaining_ms = case when v_ended then null
                                    when c.lifecycle_phase <> 'active' then c.attempt_remaining_ms
                                    when c.attempt_timeout_at_ms is not null
                                    then greatest(1, c.attempt_timeout_at_ms - e.now_ms) end,
        retry_count = case when v_replay then 0 else c.retry_count + v_retry::int end,
        lease_reclaim_count = case when v_replay then 0 else c.lease_reclaim_count end,
        replay_count = c.replay_count + v_replay::int,
        failure_reason = case when v_retry then p_failure_reason when not v_replay then c.failure_reason end,
        failure_category = case when v_retry then p_failure_category when not v_replay then c.failure_category end,
        cancellation_reason = case when not v_replay then c.cancellation_reason end,
        cancelled_by = case when not v_replay then c.cancelled_by end,
        terminal_outcome = 'none', terminal_at_ms = null,
        deadline_at_ms = case when not v_replay then c.deadline_at_ms
                              when p_replay_deadline_ms is not null
                              then ff__time_after(e.now_ms, p_replay_deadline_ms)
                              when c.deadline_at_ms > e.now_ms then c.deadline_at_ms end,
        current_suspension_id = null, current_waitpoint_id = null,
        open_waitpoints = c.open_waitpoints - p_closed_waitpoints,
        delay_until_ms = case when v_delayed then p_delay_until_ms end,
        not_before_ms = case when v_hold or v_delayed then c.not_before_ms end,
        lease_id = null, lease_ttl_ms = null, lease_expires_at_ms = null, lease_check_at_ms = null,
        worker_id = null, worker_instance_id = null, attempt_timeout_at_ms = null,
        reserved_until_ms = case when c.lifecycle_phase = 'runnable' then c.reserved_until_ms end,
        last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id
    returning c.public_state into v_state;
    if e.ownership_state = 'leased' then
        perform ff__emit_end(e, p_lease_reason, p_timer);
    end if;
    if e.granted and e.lifecycle_phase = 'active' then
        -- A grant to reclaim the attempt has lost its object.
        delete from ff_claim_grant g where g.execution_id = e.execution_id;
    end if;
    if e.limited and e.lifecycle_phase = 'active' then
        perform ff__free_slot(e, false);
    end if;
    if not v_hold and not v_deps and not v_delayed then
        perform ff__wake_lane(e.lane_id, e.execution_id);
    elsif v_verdict = 'impossible' and v_replay then
        -- The replay is counted; what the member waits for still cannot come.
        return ff__end_member(ff__open(e.execution_id), v_verdict, true);
    end if;
    return v_state;
end
$$;
