-- Locks the executions of many handles in the order of their ids (waits for them), so that two batches cannot deadlock.
-- Returns the time, read after the last lock.
create or replace function ff__open_many(p_ids uuid[]) returns bigint
language plpgsql volatile
as $$
begin
    perform from (
        select c.execution_id
          from (select distinct x.id from unnest(p_ids) x(id)) y
          join ff_exec_core c on c.execution_id = y.id
         order by c.execution_id for update of c) z;
    return ff_now_ms();
end
$$;
