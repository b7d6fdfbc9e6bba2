-- Events of one family (NULL: of all) in their order, strictly after a place and below (p_gen, p_horizon), at most
-- p_limit. Inlined into its caller: the indexes of the families are read in order, merged, and only as far as the caller
-- reads. Ends of leases stand in rows of the family completion too. The events of one row follow each other in the order;
-- the place may lie within a row: event_id - 1 to event_id + 2046 are the ids of a row.
create or replace function ff__scan_families(
    p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int, p_horizon bigint, p_limit int
) returns setof ff_event
language sql stable
as $$
    select v.*
      from (select y.* from (
            (select x.* from ff_event_log x
             where x.family = 'completion'
               and (p_family is null or p_family = 'completion' or p_family = 'lease' and x.lease_type is not null)
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'lease' and (p_family is null or p_family = 'lease')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'suspension' and (p_family is null or p_family = 'suspension')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'signal' and (p_family is null or p_family = 'signal')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'operator' and (p_family is null or p_family = 'operator')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'worker' and (p_family is null or p_family = 'worker')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'flow' and (p_family is null or p_family = 'flow')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
        ) y order by y.gen, y.ord, y.event_id limit p_limit + 1) l
     cross join lateral ff__events_in(l::ff_event_log) v
     where (p_family is null or v.family = p_family)
       and (v.gen, v.ord, v.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
     limit p_limit
$$;
