-- Locks: the flow of a member, the execution with its downstream members; then, without waiting, its children and their
-- children: up to 100 are replayed here, the rest by maintenance. Not idempotent: a second call fails with
-- execution_not_terminal.
create or replace function ff_replay_execution(
    p_execution_id text,
    p_reason text default null,
    p_requested_by text default null,
    out outcome text,
    out public_state text,
    out replay_count int
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    if p_reason is not null then
        perform ff__check_text('p_reason', p_reason, 0, 4096);
    end if;
    if p_requested_by is not null then
        perform ff__check_text('p_requested_by', p_requested_by, 0, 256);
    end if;
    e := ff__lock_member(p_execution_id);
    if e.lifecycle_phase <> 'terminal' then
        perform ff__raise('execution_not_terminal', format('execution %s is %s', p_execution_id, e.public_state),
                          jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state));
    end if;
    outcome := 'replayed';
    select x.public_state, x.replay_count into ff_replay_execution.public_state, ff_replay_execution.replay_count
      from ff__replay(e, p_reason, p_requested_by) x;
    if exists (select from ff_child k where k.parent_id = e.execution_id and not k.detached) then
        perform ff__drain_children(100, array[e.execution_id]);
    end if;
    if e.flow_id is not null then
        perform ff__close_flow(e.flow_id);
    end if;
end
$$;

comment on function ff_replay_execution(text, text, text) is
$$Runs an ended execution again, at most max_replay_count times (policy). Attempts, results and the lease epoch are
kept; retries and reclaims count from zero; the deadline of the policy starts again. In a flow, downstream members that
have not started wait for it again; a skipped member is evaluated by the current state of its upstreams. A flow that has
ended opens again. Children (p_parent_execution_id of ff_create_execution) that are not detached, did not succeed and
may be replayed are replayed too, many of them in the background. A child that is replayed on its own after its parent
ended without success becomes detached.

Outcomes: outcome = replayed
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_not_terminal, max_replays_exhausted
Errors: flow_already_terminal$$;
-- grant: ff_operator, ff_admin

-- ff__lock_execution for an operation that reads or changes the graph of the execution's flow, if any: locks the flow
-- first (ff__open_flow), then the execution and its downstream members, in the order of their ids.
-- Errors: invalid_execution_id, execution_not_found.
create or replace function ff__lock_member(p_execution_id text) returns ff_exec
language plpgsql volatile
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    v_flow uuid := (select c.flow_id from ff_execution c where c.execution_id = v_id);
    e ff_exec;
begin
    if v_flow is not null then
        perform ff__open_flow(v_flow);
        perform from (
            select c.execution_id from ff_execution c
             where c.execution_id = any (array(select d.downstream_eid from ff_edge d
                                                where d.upstream_eid = v_id) || v_id)
             order by c.execution_id for no key update) x;
    end if;
    e := ff__open(v_id, true);
    if e.execution_id is null then
        perform ff__raise_not_found(p_execution_id);
    elsif e.flow_id is distinct from v_flow then
        -- The execution joined a flow after the first read.
        perform ff__open_flow(e.flow_id);
    end if;
    return e;
end
$$;
