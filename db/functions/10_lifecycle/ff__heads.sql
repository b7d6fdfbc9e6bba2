-- The first executions of a lane that wait for a worker with these capability sets and need no admission, in the order of
-- claims, unlocked. On
-- a marked lane each priority that has a mark is read from there (see ff_scan_mark), and what lies between them as it is.
create or replace function ff__heads(
    p_lane_id text, p_keys text[], p_marked boolean, p_namespace text, p_now_ms bigint, p_limit int
) returns uuid[]
language plpgsql stable
as $$
begin
    if not p_marked then
        return array(
            select h.execution_id
              from unnest(p_keys) k(caps_key)
             cross join lateral (
                   select c.execution_id, c.priority, c.created_at_ms
                     from ff__ready(p_lane_id, k.caps_key, p_namespace, p_now_ms) c
                    where c.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true)
                    order by c.priority desc, c.created_at_ms, c.execution_id
                    limit p_limit) h
             order by h.priority desc, h.created_at_ms, h.execution_id
             limit p_limit);
    end if;
    return array(
        with m as materialized (
            select k.caps_key, x.priority, x.from_ms, x.from_id
              from unnest(p_keys) k(caps_key) cross join lateral ff__marks(p_lane_id, k.caps_key) x
             where x.priority >= 0
        ), gap as (
            select m.caps_key, m.priority + 1 as lowest,
                   coalesce(lag(m.priority) over (partition by m.caps_key order by m.priority desc), 9001) - 1 as highest
              from m
            union all
            select k.caps_key, 0, coalesce((select min(m.priority) from m where m.caps_key = k.caps_key), 9001) - 1
              from unnest(p_keys) k(caps_key)
        )
        select h.execution_id
          from (select c.execution_id, c.priority, c.created_at_ms
                  from m cross join lateral (
                       select x.execution_id, x.priority, x.created_at_ms
                         from ff__ready(p_lane_id, m.caps_key, p_namespace, p_now_ms) x
                        where x.priority = m.priority
                          and (x.created_at_ms, x.execution_id) >= (m.from_ms, m.from_id)
                          and (x.flow_id is null
                               or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                        order by x.created_at_ms, x.execution_id
                        limit p_limit) c
                union all
                select c.execution_id, c.priority, c.created_at_ms
                  from gap g cross join lateral (
                       select x.execution_id, x.priority, x.created_at_ms
                         from ff__ready(p_lane_id, g.caps_key, p_namespace, p_now_ms) x
                        where x.priority between g.lowest and g.highest
                          and (x.flow_id is null
                               or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                        order by x.priority desc, x.created_at_ms, x.execution_id
                        limit p_limit) c
                 where g.lowest <= g.highest) h
         order by h.priority desc, h.created_at_ms, h.execution_id
         limit p_limit);
end
$$;
