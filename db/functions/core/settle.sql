-- The only transition into or within runnable: decides where an execution waits, and writes it. a: how its attempt
-- ended or paused, if it was active. p_attempt_state is the state that the next claim finds (NULL: unchanged):
-- pending_* has no open attempt, pending_retry_attempt counts a retry with the failure in a, attempt_interrupted pauses
-- a running attempt and stops its clock. p_delay_until_ms is the wake-up time.
-- First match: a member of a flow that was cancelled with its members ends cancelled; an operator's hold stays; a
-- member whose edge group is impossible ends skipped, one whose group is pending waits for it; a delay in the future,
-- at p_place, otherwise at the current place, otherwise by attempt_state; ready, which notifies the lane, unless its
-- flow is still being built.
-- pending_replay_attempt clears the data of the last run and sets the deadline again, from p_replay_deadline_ms.
-- p_closed_waitpoints: the number of waitpoints closed by a resume. Returns the public state.
create or replace function ff__settle(
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
        v_verdict := ff__flow_gate(e);
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
        ready_in = case when v_place = 'ready' and v_due is null and not v_stopped
                        then ff__ready_queue(c.queue_id, c.limited) end,
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
        -- A grant to reclaim the attempt is obsolete.
        delete from ff_claim_grant g where g.execution_id = e.execution_id;
    end if;
    if e.limited and v_active then
        perform ff__free_slot(e, false);
    end if;
    if v_place = 'ready' then
        perform ff__notify_lane(e.lane_id);
    elsif v_verdict = 'impossible' and v_replay then
        -- The replay is counted, but the member's dependencies are still impossible.
        return ff__end_member(ff__open(e.execution_id, e.defer_ends), null, v_verdict, true);
    end if;
    return w.public_state;
end
$$;

-- The flow's decision on a member that is about to wait: cancelled (the flow was, together with its members),
-- impossible, pending (its edge group), building (the flow has not started), or NULL: no restriction. Reads flow and
-- group in a separate statement, after the member's row was locked: a group changes only under that lock.
create or replace function ff__flow_gate(e ff_exec) returns text
language plpgsql volatile
as $$
declare
    v_verdict text;
begin
    select case when f.public_flow_state = 'cancelled' and not f.claimable then 'cancelled'
                when g.n_edges > 0 and g.group_state in ('impossible', 'pending') then g.group_state
                when f.public_flow_state = 'building' then 'building' end
      into v_verdict
      from ff_flow_core f
      left join ff_edge_group g on g.flow_id = f.flow_id and g.downstream_eid = e.execution_id
     where f.flow_id = e.flow_id;
    return v_verdict;
end
$$;

-- Ends a member that was about to wait: cancelled with its flow, or skipped because its dependencies are impossible. a:
-- how its attempt paused, or has already ended (p_ended). Keeps the record of the pause, which its holder may still
-- replay. Returns the public state.
create or replace function ff__end_member(e ff_exec, a ff_ending, p_verdict text, p_ended boolean) returns text
language plpgsql volatile
as $$
declare
    v_outcome text := case p_verdict when 'impossible' then 'skipped' else 'cancelled' end;
    v_reason text := 'dependency_impossible';
    v_by text;
begin
    if p_verdict = 'cancelled' then
        select f.cancel_reason, f.cancelled_by into v_reason, v_by from ff_flow_core f where f.flow_id = e.flow_id;
    end if;
    if e.current_attempt_id is not null and not p_ended then
        if e.open_resources then
            perform ff__close_attempt_resources(e, 'attempt_ended', ff__close_reason(v_outcome));
        end if;
        a.outcome := v_outcome;
        a.failure_reason := v_reason;
        a.failure_category := v_outcome;
        a.classification := 'cancelled';
    end if;
    return ff__terminate(e, a, v_outcome, v_reason, null, v_by);
end
$$;

-- Updates the recorded result of a pause or retry if the member settled in another state than the verb recorded (it
-- waits for dependencies, or ended), so that a replay returns that state. Returns the public state.
create or replace function ff__record_settled_state(e ff_exec, p_public_state text) returns text
language plpgsql volatile
as $$
begin
    update ff_execution c
       set release_detail = c.release_detail || jsonb_build_object('public_state', p_public_state)
     where c.execution_id = e.execution_id and c.release_detail ->> 'public_state' <> p_public_state;
    return p_public_state;
end
$$;
