-- Locks the next executions of a lane that a worker may take, up to p_limit, in the order of ff__pick, which is the same
-- for one. Returns their ids in that order; nothing is healed here.
create or replace function ff__pick_many(p_lane_id text, p_keys text[], p_namespace text, p_limit int) returns uuid[]
language plpgsql volatile
as $$
declare
    v_ids uuid[];
    v_heads uuid[];
    v_take int := p_limit + 16;
begin
    if cardinality(p_keys) = 1 then
        return array(
            select c.execution_id from ff_exec_core c
             where c.lane_id = p_lane_id and c.caps_key = p_keys[1]
               and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
               and (p_namespace is null or c.namespace = p_namespace)
               and (c.flow_id is null
                    or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true))
               and not exists (select from ff_claim_grant g
                                where g.execution_id = c.execution_id and g.expires_at_ms > ff_now_ms())
             order by c.priority desc, c.created_at_ms, c.execution_id
             limit p_limit for update of c skip locked);
    end if;
    -- The heads of all sets merged, unlocked; then the first that can be locked. Locking each head first would hide work
    -- from others.
    loop
        v_heads := array(
            select h.execution_id
              from unnest(p_keys) k(caps_key)
             cross join lateral (
                   select c.execution_id, c.priority, c.created_at_ms from ff_exec_core c
                    where c.lane_id = p_lane_id and c.caps_key = k.caps_key
                      and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                      and (p_namespace is null or c.namespace = p_namespace)
                      and (c.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true))
                      and not exists (select from ff_claim_grant g
                                       where g.execution_id = c.execution_id and g.expires_at_ms > ff_now_ms())
                    order by c.priority desc, c.created_at_ms, c.execution_id
                    limit v_take) h
             order by h.priority desc, h.created_at_ms, h.execution_id
             limit v_take);
        v_ids := array(
            select c.execution_id
              from unnest(v_heads) with ordinality x(id, n)
              join ff_exec_core c
                on c.execution_id = x.id and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
             order by x.n limit p_limit for update of c skip locked);
        -- Short because others hold some, not because there is no more: look further.
        exit when cardinality(v_ids) = p_limit or cardinality(v_heads) < v_take;
        v_take := v_take * 4;
    end loop;
    return v_ids;
end
$$;
