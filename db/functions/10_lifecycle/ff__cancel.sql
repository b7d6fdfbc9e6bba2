-- Ends an execution cancelled, from any state. p_op: cancel by the lease holder, override otherwise.
create or replace function ff__cancel(e ff_exec, p_op text, p_reason text, p_by text) returns void
language plpgsql volatile
as $$
declare
    a ff_ending;
begin
    if e.current_attempt_id is not null then
        a := ff__end_attempt(e, p_op, 'cancelled', 'cancel', null, p_reason, 'cancelled', 'cancelled');
    end if;
    perform ff__terminate(e, a, 'cancelled', p_reason, null, p_by);
end
$$;
