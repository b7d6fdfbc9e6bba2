-- The open suspension of an execution and all its waitpoints end with its attempt, with the signals they still held.
-- Under the execution's lock.
create or replace function ff__close_waits(e ff_exec, p_close_reason text) returns void
language plpgsql volatile
as $$
begin
    update ff_suspension s set closed_at_ms = e.now_ms, close_reason = p_close_reason
     where s.execution_id = e.execution_id and s.closed_at_ms is null;
    with closed as (
        update ff_waitpoint w set state = 'closed', closed_at_ms = e.now_ms, close_reason = p_close_reason
         where w.execution_id = e.execution_id and w.state in ('pending', 'active')
        returning w.waitpoint_id)
    update ff_signal s set discarded = true
      from closed x
     where s.execution_id = e.execution_id and s.waitpoint_id = x.waitpoint_id
       and s.consumed_by is null and not s.discarded;
    update ff_execution c set open_waitpoints = 0, current_suspension_id = null, current_waitpoint_id = null
     where c.execution_id = e.execution_id;
end
$$;
