-- ff__open by wire id. Errors: invalid_execution_id, execution_not_found.
create or replace function ff__lock_execution(p_execution_id text) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec := ff__open(ff__execution_uuid(p_execution_id));
begin
    if e.execution_id is null then
        perform ff__not_found(p_execution_id);
    end if;
    return e;
end
$$;
