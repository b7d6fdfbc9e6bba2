-- Locks: the execution. Repeatable: unchanged.
create or replace function ff_change_priority(
    p_execution_id text, p_priority int, out outcome text, out old_priority int, out new_priority int
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    if p_priority is null then
        perform ff__invalid('p_priority', 'must not be null');
    end if;
    e := ff__lock_execution(p_execution_id);
    if e.lifecycle_phase = 'terminal' then
        perform ff__raise_already_terminal(e);
    end if;
    old_priority := e.priority;
    new_priority := greatest(0, least(p_priority, 9000));
    outcome := case when new_priority = old_priority then 'unchanged' else 'changed' end;
    if outcome = 'changed' then
        e := ff__emit(e, 'operator', 'priority_changed', null,
                      jsonb_build_object('old', old_priority, 'new', new_priority));
        update ff_execution c
           set priority = new_priority, rank = c.rank - ff__rank(old_priority, 0) + ff__rank(new_priority, 0),
               ready_in = case when c.ready_in is not null then ff__ready_queue(c.queue_id, c.limited) end,
               last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
         where c.execution_id = e.execution_id;
    end if;
end
$$;

comment on function ff_change_priority(text, int) is
$$Changes the priority of an execution that has not ended, clamped to 0..9000. For a running execution it takes effect
at the next claim.

Outcomes: outcome = changed | unchanged
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_already_terminal$$;
-- grant: ff_operator, ff_admin
