-- The deadline of an execution has passed: it ends expired, whatever its state.
create or replace function ff__expire_deadline(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    if e.current_attempt_id is not null then
        e := ff__end_attempt(e, 'expire', 'ended_failure', 'expired', 'execution_deadline', 'timeout', 'timeout');
    end if;
    perform ff__terminate(e, 'expired', 'execution_deadline', 'timeout', p_timer => 'execution_deadline');
end
$$;
