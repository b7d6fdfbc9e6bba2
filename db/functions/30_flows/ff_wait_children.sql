-- Locks: the flow, the execution (waits for them). Replay with the same handle: the recorded outcome, nothing written.
create or replace function ff_wait_children(
    p_handle text, out outcome text, out pending_children int, out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v record;
begin
    v := ff__wait_children(ff__decode_handle(p_handle));
    outcome := v.outcome;
    pending_children := v.pending_children;
    replayed := v.replayed;
end
$$;

comment on function ff_wait_children(text) is
$$Pauses the attempt until the executions that it waits for have ended as its edges ask. ready: there is nothing to wait
for, go on, the lease stays. waiting: the lease has ended; a later claim goes on with the same attempt. skipped: it
cannot come about any more, the execution has ended. A parent that must see failures uses any_terminal edges.

Outcomes: outcome = ready | waiting | skipped
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired, flow_cancelled$$;

-- ff_wait_children and ff_wait_children_execution. Locks: the flow, the execution (waits for them). The flow is held over
-- the look at the group and the pause, so no end of a child can fall between them.
create or replace function ff__wait_children(
    p_fence ff_fence, p_override boolean default false,
    out outcome text, out pending_children int, out replayed boolean
)
language plpgsql volatile
as $$
declare
    v_flow uuid := (select c.flow_id from ff_execution c where c.execution_id = p_fence.execution_id);
    v_op text := case when p_override then 'override' else 'wait_children' end;
    v_detail jsonb;
    e ff_exec;
    g ff_edge_group;
begin
    if v_flow is not null then
        perform ff__open_flow(v_flow);
    end if;
    if p_override then
        e := ff__override(p_fence.wire_id, p_fence.attempt_index, 'wait_children');
    else
        e := ff__fence(p_fence, 'wait_children');
    end if;
    e.defer_ends := true;
    replayed := e.execution_id is null;
    if replayed then
        v_detail := (ff__recorded_release(p_fence, 'wait_children')).release_detail;
        outcome := v_detail ->> 'outcome';
        pending_children := (v_detail -> 'pending_children')::int;
    elsif e.flow_id is null then
        outcome := 'ready';
        pending_children := 0;
    else
        if e.flow_id is distinct from v_flow then
            perform ff__open_flow(e.flow_id);
            v_flow := e.flow_id;
        end if;
        perform ff__check_flow_open(e);
        select x.* into g from ff_edge_group x where x.flow_id = e.flow_id and x.downstream_eid = e.execution_id;
        pending_children := coalesce(g.n_edges - g.n_success - g.n_failed - g.n_skipped, 0);
        outcome := case when coalesce(g.n_edges, 0) = 0 then 'ready' when g.group_state = 'pending' then 'waiting'
                        when g.group_state = 'impossible' then 'skipped' else 'ready' end;
        v_detail := jsonb_build_object('outcome', outcome, 'pending_children', pending_children);
        if outcome = 'waiting' then
            perform ff__requeue(e, ff__end_lease(e, v_op, v_op, null, v_detail), 'attempt_interrupted');
        elsif outcome = 'skipped' then
            perform ff__terminate(
                e, ff__end_attempt(e, v_op, 'skipped', v_op, null, 'dependency_impossible', 'skipped', 'cancelled', v_detail),
                'skipped', 'dependency_impossible');
        end if;
    end if;
    if p_override and outcome = 'ready' then
        -- Nothing else is written that stores the ord of the operator event.
        update ff_execution c set last_event_ord = e.ord where c.execution_id = e.execution_id;
    end if;
    if v_flow is not null then
        perform ff__close_flow(v_flow);
    end if;
end
$$;
