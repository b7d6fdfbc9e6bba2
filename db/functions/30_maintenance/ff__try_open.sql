-- ff__open without waiting, for sweeps: a row of NULLs if the execution is busy or gone. Busy is also one whose stream
-- somebody holds (ff_watch_stream takes no lock on the execution), as ending the attempt would wait for it.
create or replace function ff__try_open(p_execution_id uuid, p_defer_ends boolean default false) returns ff_exec
language plpgsql volatile
as $$
declare
    v_none ff_exec;
    e ff_exec;
begin
    perform from ff_execution c where c.execution_id = p_execution_id for no key update skip locked;
    if not found then
        return v_none;
    end if;
    e := ff__open(p_execution_id, p_defer_ends);
    if e.loose_ends then
        perform from ff_stream_meta m
          where m.execution_id = e.execution_id and m.attempt_index = e.current_attempt_index for update skip locked;
        if not found and exists (select from ff_stream_meta m where m.execution_id = e.execution_id
                                                                and m.attempt_index = e.current_attempt_index) then
            return v_none;
        end if;
    end if;
    return e;
end
$$;
