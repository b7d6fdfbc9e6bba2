-- Ends an execution cancelled, from any state. p_op: cancel by the lease holder, override otherwise.
create or replace function ff__cancel(e ff_exec, p_op text, p_reason text, p_by text) returns void
language plpgsql volatile
as $$
begin
    if e.current_attempt_id is not null then
        e := ff__end_attempt(e, p_op, 'ended_cancelled', 'cancelled', p_reason, 'cancelled', 'cancelled');
    end if;
    perform ff__terminate(e, 'cancelled', p_reason, null, p_by, 'cancel');
end
$$;
