-- Locks: the execution. Only ended executions: a running attempt reads its steps at its start, and they must not be
-- deleted meanwhile.
create or replace function ff_forget_steps(p_execution_id text, p_from text default null, out forgotten int)
language plpgsql volatile security definer
as $$
declare
    v_from int := 1;
    e ff_exec;
begin
    if p_from is not null then
        perform ff__check_text('p_from', p_from, 1, 512);
    end if;
    e := ff__lock_execution(p_execution_id);
    if e.lifecycle_phase <> 'terminal' then
        perform ff__raise('execution_not_terminal', format('execution %s is %s', p_execution_id, e.public_state),
                          jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state));
    end if;
    if p_from is not null then
        select s.ordinal into v_from from ff_step s where s.execution_id = e.execution_id and s.name = p_from;
        if not found then
            perform ff__invalid('p_from', 'is not the name of a recorded step',
                                jsonb_build_object('execution_id', p_execution_id, 'name', p_from));
        end if;
    end if;
    delete from ff_step s where s.execution_id = e.execution_id and s.ordinal >= v_from;
    get diagnostics forgotten = row_count;
    update ff_suspension x set forgotten = true where x.execution_id = e.execution_id and not x.forgotten;
end
$$;

comment on function ff_forget_steps(text, text) is
$$Deletes the recorded steps of an ended execution, so that a replay runs them again: all steps, or p_from and those
recorded after it. Without this call a replay continues after the recorded steps. Signals received by earlier attempts
are also hidden: ff_observe_signals does not return them to a later attempt.

Errors: invalid_input, invalid_execution_id, execution_not_found, execution_not_terminal$$;
-- grant: ff_operator, ff_admin
