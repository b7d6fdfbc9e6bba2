-- ff_wait_children and ff_wait_children_execution. Locks: the flow, the execution (waits for them). The flow is held over
-- the look at the group and the pause, so no end of a child can fall between them.
create or replace function ff__wait_children(
    p_fence ff_fence, p_override boolean default false,
    out outcome text, out pending_children int, out replayed boolean
)
language plpgsql volatile
as $$
declare
    v_flow uuid := (select c.flow_id from ff_exec_core c where c.execution_id = p_fence.execution_id);
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
            perform ff__requeue(ff__pause_attempt(e, v_op, v_detail), 'attempt_interrupted', p_lease_reason => v_op);
        elsif outcome = 'skipped' then
            perform ff__terminate(
                ff__end_attempt(e, v_op, 'ended_cancelled', 'skipped', 'dependency_impossible', 'skipped', 'cancelled',
                                p_release_detail => v_detail),
                'skipped', 'dependency_impossible', p_lease_reason => v_op);
        end if;
    end if;
    if p_override and outcome = 'ready' then
        -- Nothing else is written that stores the ord of the operator event.
        update ff_exec_core c set last_event_ord = e.ord where c.execution_id = e.execution_id;
    end if;
    if v_flow is not null then
        perform ff__close_flow(v_flow);
    end if;
end
$$;
