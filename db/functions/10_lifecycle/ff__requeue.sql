-- The only way an execution becomes, or stays, runnable: decides where it waits, and writes it. a: how its attempt ended or
-- paused, if it was active. p_attempt_state is what the next claim finds (NULL: as it stands): pending_* leaves no open
-- attempt, pending_retry_attempt counts a retry with the failure in a, attempt_interrupted pauses a running one and stops its
-- clock. p_delay_until_ms is the wake-up time.
-- First match: a member of a flow that was cancelled with its members ends cancelled; an operator's hold stays; a member
-- whose edge group is impossible ends skipped, one whose group is pending waits for it; a delay in the future, for
-- p_place, else as it stands, else by attempt_state; ready, which wakes the lane, unless its flow is still being built.
-- pending_replay_attempt wipes what the last run left and arms the deadline anew, from p_replay_deadline_ms.
-- p_closed_waitpoints: how many a resume has closed. Returns the public state.
create or replace function ff__requeue(
    e ff_exec,
    a ff_ending default null,
    p_attempt_state text default null,
    p_delay_until_ms bigint default null,
    p_place text default null,
    p_replay_deadline_ms bigint default null,
    p_closed_waitpoints int default 0
) returns text
language plpgsql volatile
as $$
declare
    v_hold boolean := e.eligibility_state = 'blocked_by_operator';
    v_delayed boolean := not v_hold and coalesce(p_delay_until_ms > e.now_ms, false);
    v_ended boolean := coalesce(p_attempt_state like 'pending%', false);
    v_retry boolean := coalesce(p_attempt_state = 'pending_retry_attempt', false);
    v_replay boolean := coalesce(p_attempt_state = 'pending_replay_attempt', false);
    v_active boolean := e.lifecycle_phase = 'active';
    v_attempt_state text := coalesce(p_attempt_state, e.attempt_state);
    v_deps boolean := false;
    v_stopped boolean := false;
    v_verdict text;
    v_place text;
    v_due bigint;
    w ff_state_word;
begin
    if e.flow_id is not null then
        v_verdict := ff__member_verdict(e);
        if v_verdict = 'cancelled' or v_verdict = 'impossible' and not v_hold and not v_replay then
            return ff__end_member(e, a, v_verdict, v_ended);
        end if;
        v_stopped := coalesce(v_verdict = 'building', false);
        v_deps := v_verdict in ('impossible', 'pending') and not v_hold;
    end if;
    v_place := case when v_hold then 'held' when v_deps then 'children' when not v_delayed then 'ready'
                    when p_place is not null then p_place
                    when e.eligibility_state = 'not_eligible_until_time'
                    then (select x.place from ff_state_word x where x.state = e.state)
                    when v_attempt_state = 'pending_retry_attempt' then 'backoff'
                    else 'delayed' end;
    select x.* into strict w from ff_state_word x where x.place = v_place and x.attempt_state = v_attempt_state;
    if v_place in ('delayed', 'backoff', 'resume_delay') then
        v_due := p_delay_until_ms;
    elsif v_place = 'ready' and e.granted and not v_active then
        v_due := (select g.expires_at_ms from ff_claim_grant g where g.execution_id = e.execution_id);
    end if;
    update ff_execution c set
        state = w.state, due_at_ms = v_due,
        ready_in = case when v_place = 'ready' and v_due is null and not v_stopped then c.queue_id end,
        blocking_detail = case when v_hold then c.blocking_detail end, blocked_budget_id = null,
        attempt_remaining_ms = case when v_ended then null
                                    when not v_active then c.attempt_remaining_ms
                                    when c.attempt_timeout_at_ms is not null
                                    then greatest(1, c.attempt_timeout_at_ms - e.now_ms) end,
        attempt_timeout_at_ms = null, lease_revoke_reason = null,
        attempt_outcome = coalesce(a.outcome, c.attempt_outcome),
        attempt_ended_at_ms = case when a.outcome is not null then e.now_ms else c.attempt_ended_at_ms end,
        attempt_suspended_at_ms = case when a.op is not null and a.outcome is null then e.now_ms
                                       else c.attempt_suspended_at_ms end,
        attempt_failure_reason = coalesce(a.failure_reason, c.attempt_failure_reason),
        attempt_failure_category = coalesce(a.failure_category, c.attempt_failure_category),
        attempt_classification = coalesce(a.classification, c.attempt_classification),
        release_op = coalesce(a.op, c.release_op),
        release_at_ms = case when a.op is not null then e.now_ms else c.release_at_ms end,
        release_detail = case when a.op is not null then a.detail else c.release_detail end,
        release_lease_id = case when a.op is null then c.release_lease_id end,
        release_lease_epoch = case when a.op is null then c.release_lease_epoch end,
        retry_count = case when v_replay then 0 else c.retry_count + v_retry::int end,
        lease_reclaim_count = case when v_replay then 0 else c.lease_reclaim_count end,
        replay_count = c.replay_count + v_replay::int,
        failure_reason = case when v_retry then a.failure_reason when not v_replay then c.failure_reason end,
        failure_category = case when v_retry then a.failure_category when not v_replay then c.failure_category end,
        cancellation_reason = case when not v_replay then c.cancellation_reason end,
        cancelled_by = case when not v_replay then c.cancelled_by end,
        terminal_at_ms = null,
        deadline_at_ms = case when not v_replay then c.deadline_at_ms
                              when p_replay_deadline_ms is not null
                              then ff__time_after(e.now_ms, p_replay_deadline_ms)
                              when c.deadline_at_ms > e.now_ms then c.deadline_at_ms end,
        current_suspension_id = null, current_waitpoint_id = null,
        open_waitpoints = c.open_waitpoints - p_closed_waitpoints,
        delay_until_ms = case when v_delayed then p_delay_until_ms end,
        not_before_ms = case when v_hold or v_delayed then c.not_before_ms end, granted = c.granted and not v_active,
        last_transition_at_ms = e.now_ms, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
    if a.lease_event is not null then
        e := ff__emit(e, 'lease', a.lease_event, a.lease_reason);
    end if;
    if e.granted and v_active then
        -- A grant to reclaim the attempt has lost its object.
        delete from ff_claim_grant g where g.execution_id = e.execution_id;
    end if;
    if e.limited and v_active then
        perform ff__free_slot(e, false);
    end if;
    if v_place = 'ready' then
        perform ff__wake_lane(e.lane_id);
    elsif v_verdict = 'impossible' and v_replay then
        -- The replay is counted; what the member waits for still cannot come.
        return ff__end_member(ff__open(e.execution_id, e.defer_ends), null, v_verdict, true);
    end if;
    return w.public_state;
end
$$;
