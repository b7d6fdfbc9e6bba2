-- Deletes the oldest events of a family whose row is locked, p_limit at most; how many.
create or replace function ff__trim_family(f ff_event_family, p_now_ms bigint, p_gen int, p_horizon bigint, p_limit int)
returns int
language plpgsql volatile
as $$
declare
    v_count int;
    v_stop ff_event_place;
begin
    -- The oldest is not old enough: nothing is.
    if (select x.occurred_at_ms > p_now_ms - f.retention_ms from ff_event x
         where x.family = f.family and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id)
         order by x.gen, x.ord, x.event_id limit 1) is not false then
        return 0;
    end if;
    -- The last of the old ones before the first that is not: only a prefix of the order may go.
    select y.gen, y.ord, y.event_id into v_stop
      from (select x.gen, x.ord, x.event_id,
                   bool_and(x.occurred_at_ms <= p_now_ms - f.retention_ms)
                       over (order by x.gen, x.ord, x.event_id rows unbounded preceding) as old
              from ff_event x
             where x.family = f.family and (x.gen, x.ord) < (p_gen, p_horizon)
               and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id)
             order by x.gen, x.ord, x.event_id limit p_limit) y
     where y.old order by y.gen desc, y.ord desc, y.event_id desc limit 1;
    if v_stop.gen is null then
        return 0;
    end if;
    delete from ff_event x
     where x.family = f.family and (x.gen, x.ord, x.event_id) <= (v_stop.gen, v_stop.ord, v_stop.event_id)
       and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id);
    get diagnostics v_count = row_count;
    update ff_event_family x
       set trimmed_gen = v_stop.gen, trimmed_ord = v_stop.ord, trimmed_event_id = v_stop.event_id
     where x.family = f.family;
    return v_count;
end
$$;
