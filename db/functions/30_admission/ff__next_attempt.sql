-- The index of the attempt that the next claim of an execution would run: the paused one, or a new one.
create or replace function ff__next_attempt(e ff_exec) returns int
language plpgsql immutable
as $$
begin
    return case when e.lifecycle_phase in ('runnable', 'suspended') and e.attempt_state = 'attempt_interrupted'
                then e.current_attempt_index else e.total_attempt_count end;
end
$$;
