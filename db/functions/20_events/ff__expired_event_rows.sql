-- The oldest rows that hold events of a family, after a place and below (p_gen, p_horizon), p_limit at most, in their order.
-- Plain SQL, so that it is inlined.
create or replace function ff__expired_event_rows(
    p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int, p_horizon bigint, p_limit int
) returns table (family text, gen int, ord bigint, event_id bigint, occurred_at_ms bigint, size int)
language sql stable
as $$
    select x.family, x.gen, x.ord, x.event_id, x.occurred_at_ms, x.size
      from ((select y.family, y.gen, y.ord, y.event_id, y.occurred_at_ms, coalesce(y.size, 1)::int as size
               from ff_event_log y
              where y.family = p_family and (y.gen, y.ord) < (p_gen, p_horizon)
                and (y.gen, y.ord, y.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
              order by y.gen, y.ord, y.event_id limit p_limit)
            union all
            -- Ends of leases that came with a completion.
            (select y.family, y.gen, y.ord, y.event_id, y.occurred_at_ms, coalesce(y.size, 1)::int
               from ff_event_log y
              where p_family = 'lease' and y.family = 'completion' and y.lease_type is not null
                and (y.gen, y.ord) < (p_gen, p_horizon)
                and (y.gen, y.ord, y.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
              order by y.gen, y.ord, y.event_id limit p_limit)) x
     order by x.gen, x.ord, x.event_id limit p_limit
$$;
