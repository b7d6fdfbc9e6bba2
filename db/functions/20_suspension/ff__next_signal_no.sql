-- The number of the next signal of an execution that was locked.
create or replace function ff__next_signal_no(p_execution_id uuid) returns bigint
language plpgsql stable
as $$
begin
    return 1 + coalesce((select max(s.seq) from ff_signal s where s.execution_id = p_execution_id), 0);
end
$$;
