-- Locks an execution (waits for it) and stamps it. Errors: invalid_execution_id, execution_not_found.
create or replace function ff__lock_execution(p_execution_id text) returns ff_exec_core
language plpgsql volatile
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    e ff_exec_core;
begin
    select c.* into e from ff_exec_core c where c.execution_id = v_id for update;
    if not found then
        perform ff__raise('execution_not_found', format('no execution %s', p_execution_id),
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    return ff__stamp(e);
end
$$;
