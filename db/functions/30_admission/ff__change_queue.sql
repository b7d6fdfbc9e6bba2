-- Executions that are locked came under a limit, or are under none any more (limited was set): they belong to another queue
-- of their lane, and are in it if they were in the old one.
create or replace function ff__change_queue(p_ids uuid[]) returns void
language plpgsql volatile
as $$
begin
    update ff_execution c
       set queue_id = q.queue_id, ready_in = case when c.ready_in is not null then q.queue_id end
      from (select x.execution_id,
                   ff__queue(y.lane_id, y.namespace, x.limited, y.caps_key, y.required_capabilities) as queue_id
              from ff_execution x join ff_queue y on y.queue_id = x.queue_id
             where x.execution_id = any (p_ids) and x.limited <> y.limited) q
     where c.execution_id = q.execution_id;
end
$$;
