-- Locks: the family's row (skip locked: somebody else is at it), then its oldest events. Never waits.
create or replace function ff_trim_events(p_limit int default 10000, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
    v_now bigint := ff_now_ms();
    v_gen int;
    v_horizon bigint;
    v_count int;
    v_stop ff_event_place;
    f ff_event_family;
begin
    perform ff__check_limit(p_limit, 100000);
    v_gen := ff__event_generation();
    v_horizon := ff__event_horizon();
    processed := 0;
    errors := 0;
    for f in select x.* from ff_event_family x order by x.family for update skip locked loop
        exit when processed >= p_limit;
        -- The last of the old ones before the first that is not: only a prefix of the order may go.
        select y.gen, y.ord, y.event_id into v_stop
          from (select x.gen, x.ord, x.event_id,
                       bool_and(x.occurred_at_ms <= v_now - f.retention_ms)
                           over (order by x.gen, x.ord, x.event_id rows unbounded preceding) as old
                  from ff_event x
                 where x.family = f.family and (x.gen, x.ord) < (v_gen, v_horizon)
                   and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id)
                 order by x.gen, x.ord, x.event_id limit p_limit - processed) y
         where y.old order by y.gen desc, y.ord desc, y.event_id desc limit 1;
        continue when v_stop.gen is null;
        delete from ff_event x
         where x.family = f.family and (x.gen, x.ord, x.event_id) <= (v_stop.gen, v_stop.ord, v_stop.event_id)
           and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id);
        get diagnostics v_count = row_count;
        processed := processed + v_count;
        update ff_event_family x
           set trimmed_gen = v_stop.gen, trimmed_ord = v_stop.ord, trimmed_event_id = v_stop.event_id
         where x.family = f.family;
    end loop;
    more := processed >= p_limit and p_limit > 0;
end
$$;

comment on function ff_trim_events(int) is
$$Deletes events that are older than the retention of their family (7 days unless ff_set_event_family says otherwise), oldest
first, at most p_limit per call (up to 100000); more says whether to call again. A reader that had not come that far is told:
cursor_expired.

Errors: invalid_input, event_generation_stale$$;
