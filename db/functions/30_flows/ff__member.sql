-- What a flow says of a member that is about to wait: cancelled (the flow was, and its members are not to go on),
-- impossible, pending (its edge group), building (the flow has not started), or NULL: go on. Reads flow and group in a statement of its own, after the
-- member's row was locked: a group changes only under that lock.
create or replace function ff__member_verdict(e ff_exec) returns text
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

-- A member that was about to wait ends instead: cancelled with its flow, or skipped because what it waits for cannot
-- come. a: how its attempt paused, or ended already (p_ended). The record of the pause stays: its holder may replay it.
-- Returns the public state.
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
        if e.loose_ends then
            perform ff__tie_loose_ends(e, 'attempt_ended', ff__close_reason(v_outcome));
        end if;
        a.outcome := v_outcome;
        a.failure_reason := v_reason;
        a.failure_category := v_outcome;
        a.classification := 'cancelled';
    end if;
    return ff__terminate(e, a, v_outcome, v_reason, null, v_by);
end
$$;

-- A member's pause or retry went elsewhere than its verb said (it waits for dependencies, or ended): the record that a
-- replay answers from says where. Returns the public state.
create or replace function ff__note_settled(e ff_exec, p_public_state text) returns text
language plpgsql volatile
as $$
begin
    update ff_execution c
       set release_detail = c.release_detail || jsonb_build_object('public_state', p_public_state)
     where c.execution_id = e.execution_id and c.release_detail ->> 'public_state' <> p_public_state;
    return p_public_state;
end
$$;
