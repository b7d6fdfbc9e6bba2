-- A pending waitpoint of a locked execution is over: closed by its worker, or expired. What it buffered is discarded.
create or replace function ff__end_pending(e ff_exec, p_waitpoint_id uuid, p_state text, p_reason text) returns void
language plpgsql volatile
as $$
begin
    update ff_waitpoint w set state = p_state, closed_at_ms = e.now_ms, close_reason = p_reason
     where w.waitpoint_id = p_waitpoint_id;
    update ff_signal s set discarded = true
     where s.execution_id = e.execution_id and s.waitpoint_id = p_waitpoint_id
       and s.consumed_by is null and not s.discarded;
    update ff_execution c set
        open_waitpoints = c.open_waitpoints - 1, last_mutation_at_ms = e.now_ms, last_event_ord = e.ord
     where c.execution_id = e.execution_id;
end
$$;
