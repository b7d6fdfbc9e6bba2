-- Creates the meta row of the current attempt's stream and marks the execution, whose end will close it. Under the
-- execution's lock, so no other does the same.
create or replace function ff__open_stream(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    insert into ff_stream_meta (execution_id, attempt_index) values (e.execution_id, e.current_attempt_index);
    update ff_execution c set stream_open = true, last_mutation_at_ms = e.now_ms where c.execution_id = e.execution_id;
end
$$;
