-- Locks the executions of many fences in the order of their ids (waits for them), so that two batches cannot deadlock.
-- Returns the time, read after the last lock.
create or replace function ff__open_many(p_fences ff_fence[]) returns bigint
language plpgsql volatile
as $$
begin
    perform from (
        select c.execution_id
          from (select distinct f.execution_id from unnest(p_fences) f) x
          join ff_exec_core c on c.execution_id = x.execution_id
         order by c.execution_id for update of c) y;
    return ff_now_ms();
end
$$;
