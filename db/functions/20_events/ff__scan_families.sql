-- Events of one family (NULL: of all) in their order, strictly after a place and below (p_gen, p_horizon), at most
-- p_limit. Inlined into its caller: the indexes of the families are read in order, merged, and only as far as the caller
-- reads.
create or replace function ff__scan_families(
    p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int, p_horizon bigint, p_limit int
) returns setof ff_event
language sql stable
as $$
    select y.* from (
        (select x.* from ff_event x
         where x.family = 'completion' and (p_family is null or p_family = 'completion')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
        union all
        (select x.* from ff_event x
         where x.family = 'lease' and (p_family is null or p_family = 'lease')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
        union all
        (select x.* from ff_event x
         where x.family = 'suspension' and (p_family is null or p_family = 'suspension')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
        union all
        (select x.* from ff_event x
         where x.family = 'signal' and (p_family is null or p_family = 'signal')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
        union all
        (select x.* from ff_event x
         where x.family = 'operator' and (p_family is null or p_family = 'operator')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
        union all
        (select x.* from ff_event x
         where x.family = 'worker' and (p_family is null or p_family = 'worker')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
        union all
        (select x.* from ff_event x
         where x.family = 'flow' and (p_family is null or p_family = 'flow')
           and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
           and (x.gen, x.ord) < (p_gen, p_horizon)
         order by x.gen, x.ord, x.event_id limit p_limit)
    ) y order by y.gen, y.ord, y.event_id limit p_limit
$$;
