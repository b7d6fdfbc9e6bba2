-- Events of one execution, of one family or of all, as ff__scan_families. There are few: they are sorted.
create or replace function ff__scan_execution(
    p_execution_id uuid, p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int,
    p_horizon bigint, p_limit int
) returns setof ff_event
language sql stable
as $$
    select x.* from ff__event_rows(p_execution_id) l cross join lateral ff__events_in(l) x
     where x.execution_id = p_execution_id and (p_family is null or x.family = p_family)
       and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
       and (x.gen, x.ord) < (p_gen, p_horizon)
     order by x.gen, x.ord, x.event_id limit p_limit
$$;
