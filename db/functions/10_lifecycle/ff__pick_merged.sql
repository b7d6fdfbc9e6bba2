-- Locks the first executions of a lane that wait for a worker with one of up to sixteen capability sets and need no
-- admission, up to p_limit, in the order of claims. Returns their ids in that order. For lanes without marks.
-- The sets are merged as they are read, row by row (Merge Append), so that nothing is read but what is locked, one row
-- of each other set, and what is passed over: what others hold, what is reserved, other namespaces, stopped flows. That
-- needs one ordered scan per set, hence the repetition; sets that are not given (NULL) cost next to nothing.
-- Each row is locked by a look-up of its own: a lock on the join would have the whole merge run again for every row that
-- another session has changed meanwhile.
create or replace function ff__pick_merged(
    p_lane_id text, p_keys text[], p_namespace text, p_now_ms bigint, p_limit int
) returns uuid[]
language plpgsql volatile
as $$
begin
    return array(
        select z.execution_id
          from (select u.priority, u.created_at_ms, u.execution_id
                  from (
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[1], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[2], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[3], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[4], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[5], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[6], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[7], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[8], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[9], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[10], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[11], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[12], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[13], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[14], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[15], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                     union all
                    (select r.priority, r.created_at_ms, r.execution_id
                       from ff__ready(p_lane_id, p_keys[16], p_namespace, p_now_ms) r
                      order by r.priority desc, r.created_at_ms, r.execution_id)
                  ) u
                 order by u.priority desc, u.created_at_ms, u.execution_id
                offset 0) h
         cross join lateral (
               select c.execution_id from ff_exec_core c
                where c.execution_id = any (array[h.execution_id]) -- see ff__open_many
                      -- CASE, so that no plan reads all that is ready.
                  and case when c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                           then c.reserved_until_ms is null or c.reserved_until_ms <= p_now_ms end
                  and (p_namespace is null or c.namespace = p_namespace)
                  and (c.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true))
                  for update skip locked) z
         order by h.priority desc, h.created_at_ms, h.execution_id
         limit p_limit);
end
$$;
