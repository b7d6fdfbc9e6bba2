-- Runs an ended execution again; the caller holds it, and a member's flow with all that waits for it. Its attached
-- children that did not succeed and may be replayed are put on the work list, and a member waits for those that it waited
-- for. An attached child whose parent has ended other than by success becomes detached; otherwise its parent is checked
-- once this has committed. Errors: max_replays_exhausted, flow_already_terminal.
create or replace function ff__replay(
    e ff_exec, p_reason text, p_requested_by text, out public_state text, out replay_count int
)
language plpgsql volatile
as $$
declare
    v_max int;
    v_deadline_ms bigint;
    v_parent uuid;
    v_outcome text;
    v_kept boolean;
begin
    select (i.policy -> 'max_replay_count')::int, (i.policy #> '{timeout_policy,execution_deadline_ms}')::bigint,
           c.replay_count + 1
      into v_max, v_deadline_ms, replay_count
      from ff_exec_core c join ff_exec_input i on i.execution_id = c.execution_id
     where c.execution_id = e.execution_id;
    if replay_count > v_max then
        perform ff__raise('max_replays_exhausted',
                          format('execution %s was replayed %s times', ff__wire_id(e.partition_key, e.execution_id), v_max),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'max_replay_count', v_max));
    end if;
    -- Not found: it has no attached parent, or retention deletes the parent just now.
    perform from ff_child k join ff_exec_input i on i.execution_id = k.parent_id
      where k.child_id = e.execution_id and not k.detached for key share of i skip locked;
    v_kept := found;
    select k.parent_id, c.terminal_outcome into v_parent, v_outcome
      from ff_child k left join ff_exec_core c on c.execution_id = k.parent_id
     where k.child_id = e.execution_id and not k.detached;
    if v_outcome not in ('none', 'success') then
        update ff_child k set detached = true where k.child_id = e.execution_id;
    elsif v_outcome is not null and v_kept then
        insert into ff_child_work (parent_id, action) values (v_parent, 'check');
    end if;
    insert into ff_child_work (parent_id, child_id, action)
    select k.parent_id, k.child_id, 'replay' from ff_child k
     where k.parent_id = e.execution_id and not k.detached and ff__replayable(k.child_id)
     order by k.created_at_ms, k.child_id;
    if e.flow_id is not null then
        perform ff__replay_member(e);
    end if;
    e := ff__emit(e, 'operator', 'replayed', p_reason,
                  jsonb_build_object('branch', case when e.flow_id is null then 'solo' else 'member' end,
                                     'replay_count', replay_count, 'reason', p_reason, 'requested_by', p_requested_by));
    public_state := ff__requeue(e, 'pending_replay_attempt', p_replay_deadline_ms => v_deadline_ms);
end
$$;
