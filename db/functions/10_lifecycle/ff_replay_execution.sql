-- Locks: a member's flow and children, the execution. Not idempotent: a second call meets execution_not_terminal.
create or replace function ff_replay_execution(
    p_execution_id text,
    p_reason text default null,
    p_requested_by text default null,
    out outcome text,
    out public_state text,
    out replay_count int
)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_max int;
    v_deadline_ms bigint;
    e ff_exec;
begin
    if p_reason is not null then
        perform ff__check_text('p_reason', p_reason, 0, 4096);
    end if;
    if p_requested_by is not null then
        perform ff__check_text('p_requested_by', p_requested_by, 0, 256);
    end if;
    e := ff__lock_member(p_execution_id, true);
    if e.lifecycle_phase <> 'terminal' then
        perform ff__raise('execution_not_terminal', format('execution %s is %s', p_execution_id, e.public_state),
                          jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state));
    end if;
    select (i.policy -> 'max_replay_count')::int, (i.policy #> '{timeout_policy,execution_deadline_ms}')::bigint,
           c.replay_count + 1
      into v_max, v_deadline_ms, replay_count
      from ff_exec_core c join ff_exec_input i on i.execution_id = c.execution_id
     where c.execution_id = e.execution_id;
    if replay_count > v_max then
        perform ff__raise('max_replays_exhausted', format('execution %s was replayed %s times', p_execution_id, v_max),
                          jsonb_build_object('execution_id', p_execution_id, 'max_replay_count', v_max));
    end if;
    if e.flow_id is not null then
        perform ff__replay_member(e);
    end if;
    e := ff__emit(e, 'operator', 'replayed', p_reason, null,
                  jsonb_build_object('branch', case when e.flow_id is null then 'solo' else 'member' end, 'replay_count', replay_count, 'reason', p_reason,
                                     'requested_by', p_requested_by));
    outcome := 'replayed';
    public_state := ff__requeue(e, 'pending_replay_attempt', p_replay_deadline_ms => v_deadline_ms);
    if e.flow_id is not null then
        perform ff__close_flow(e.flow_id);
    end if;
end
$$;

comment on function ff_replay_execution(text, text, text) is
$$Runs an ended execution again, as often as its policy's max_replay_count allows. Attempts, results and the lease epoch
are kept; retries and reclaims count from zero; the deadline of the policy starts anew. In a flow, children that have not
started wait for it again; a skipped member is judged by its upstreams as they are now. The flow, if it had ended, opens.

Outcomes: outcome = replayed
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_not_terminal, max_replays_exhausted, flow_already_terminal$$;
