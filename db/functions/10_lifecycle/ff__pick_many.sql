-- Locks the next executions of a lane that a worker may take, up to p_limit, in the order of ff__pick, which is the same
-- for one. What is due on the lane enters the ready index first, if p_enter_due. Returns their ids in that order; nothing is healed here.
-- None if the lane is unknown, paused or disabled. Errors: invalid_lane_id.
create or replace function ff__pick_many(p_lane_id text, p_capabilities text[], p_namespace text, p_limit int,
                                         p_enter_due boolean default true)
returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms();
    v_keys text[];
    v_ids uuid[];
    v_heads uuid[];
    v_take int := p_limit + 16;
begin
    if not ff__lane_claimable(p_lane_id) then
        return '{}';
    end if;
    if p_enter_due then
        perform ff__enter_due(p_lane_id, v_now);
    end if;
    v_keys := ff__covered_keys(p_lane_id, p_capabilities);
    if cardinality(v_keys) = 1 then
        return array(
            select c.execution_id from ff_exec_core c
             where c.lane_id = p_lane_id and c.caps_key = v_keys[1] and c.blocking_reason = 'waiting_for_worker'
               and (c.reserved_until_ms is null or c.reserved_until_ms <= v_now)
               and (p_namespace is null or c.namespace = p_namespace)
             order by c.priority desc, c.created_at_ms, c.execution_id
             limit p_limit for update of c skip locked);
    end if;
    -- The heads of all sets merged, unlocked; then the first that can be locked. Locking each head first would hide work
    -- from others.
    loop
        v_heads := array(
            select h.execution_id
              from unnest(v_keys) k(caps_key)
             cross join lateral (
                   select c.execution_id, c.priority, c.created_at_ms from ff_exec_core c
                    where c.lane_id = p_lane_id and c.caps_key = k.caps_key
                      and c.blocking_reason = 'waiting_for_worker'
                      and (c.reserved_until_ms is null or c.reserved_until_ms <= v_now)
                      and (p_namespace is null or c.namespace = p_namespace)
                    order by c.priority desc, c.created_at_ms, c.execution_id
                    limit v_take) h
             order by h.priority desc, h.created_at_ms, h.execution_id
             limit v_take);
        v_ids := array(
            select c.execution_id
              from unnest(v_heads) with ordinality x(id, n)
              join ff_exec_core c on c.execution_id = x.id and c.blocking_reason = 'waiting_for_worker'
                   and (c.reserved_until_ms is null or c.reserved_until_ms <= v_now)
             order by x.n limit p_limit for update of c skip locked);
        -- Short because others hold some, not because there is no more: look further.
        exit when cardinality(v_ids) = p_limit or cardinality(v_heads) < v_take;
        v_take := v_take * 4;
    end loop;
    return v_ids;
end
$$;
