-- How many signals an execution may receive: its policy's max_signals_per_execution.
create or replace function ff__max_signals(p_execution_id uuid) returns int
language plpgsql stable
as $$
begin
    return coalesce((select (c.policy -> 'max_signals_per_execution')::int from ff_execution c
                      where c.execution_id = p_execution_id), 10000);
end
$$;
