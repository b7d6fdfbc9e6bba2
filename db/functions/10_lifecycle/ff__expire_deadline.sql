-- The deadline of an execution has passed: it ends expired, whatever its state.
create or replace function ff__expire_deadline(e ff_exec) returns void
language plpgsql volatile
as $$
declare
    a ff_ending;
begin
    if e.current_attempt_id is not null then
        a := ff__end_attempt(e, 'expire', 'expired', null, 'execution_deadline', 'execution_deadline', 'timeout', 'timeout');
    end if;
    perform ff__terminate(e, a, 'expired', 'execution_deadline', 'timeout');
end
$$;
