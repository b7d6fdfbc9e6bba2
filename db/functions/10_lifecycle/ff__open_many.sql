-- Locks the executions of many handles in the order of their ids (waits for them), so that two batches cannot deadlock.
-- Returns the time, read after the last lock.
-- Plans are made once per session, maybe while the tables are small, when a scan of a whole index looks as cheap as a
-- look-up. So the batch verbs leave no choice: a lateral row by row here, and "= any (array[..])" in their joins, which
-- can be an index condition, and cannot be merged, hashed or sorted for.
create or replace function ff__open_many(p_ids uuid[]) returns bigint
language plpgsql volatile
as $$
begin
    perform from (select distinct x.id from unnest(p_ids) x(id) order by x.id) y
      cross join lateral (select from ff_exec_core c where c.execution_id = y.id for update offset 0) z;
    return ff__now_ms();
end
$$;
