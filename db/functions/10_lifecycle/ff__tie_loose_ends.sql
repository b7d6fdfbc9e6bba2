-- What an attempt leaves open ends with it: its suspension and waitpoints, for p_close_reason, and its stream, for
-- p_stream_reason. Called by the end of the attempt (ff__end_attempt) when e.loose_ends says that there is something.
-- Returns e without loose ends.
create or replace function ff__tie_loose_ends(e ff_exec, p_close_reason text, p_stream_reason text) returns ff_exec
language plpgsql volatile
as $$
declare
    v_waits boolean;
    v_stream boolean;
begin
    select c.open_waitpoints > 0, c.stream_open into v_waits, v_stream from ff_exec_core c
     where c.execution_id = e.execution_id;
    if v_waits then
        perform ff__close_waits(e, p_close_reason);
    end if;
    if v_stream then
        perform ff__close_stream(e, p_stream_reason);
    end if;
    e.loose_ends := false;
    return e;
end
$$;
