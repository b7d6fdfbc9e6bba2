-- What waits on a lane for a worker with one capability set and needs no admission, without what is reserved and, if a
-- namespace is asked for, the others. No order, and no look at flows or locks: the caller's. A view with arguments: the
-- planner puts its text into the query that asks, which can read it in the order of the ready index and stop early.
create or replace function ff__ready(p_lane_id text, p_caps_key text, p_namespace text, p_now_ms bigint)
returns table (priority int, created_at_ms bigint, execution_id uuid, flow_id uuid)
language sql stable
as $$
    select c.priority, c.created_at_ms, c.execution_id, c.flow_id from ff_exec_core c
     where c.lane_id = p_lane_id and not c.limited and c.caps_key = p_caps_key
       and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
       and (c.reserved_until_ms is null or c.reserved_until_ms <= p_now_ms)
       and (p_namespace is null or c.namespace = p_namespace)
$$;
