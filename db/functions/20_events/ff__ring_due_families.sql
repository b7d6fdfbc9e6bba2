-- Rings for the families that notify by tick and have events since the last time. Once per tick; returns how many rang.
-- A transaction that began early may come last: its events have greater ids at smaller places. So the greatest id among
-- the last 100 places counts; settings, so that no statistics make the planner sort all of them. Locks a family only if
-- it is to ring, without waiting.
create or replace function ff__ring_due_families() returns int
language plpgsql volatile
as $$
declare
    v_rung int := 0;
    v_last bigint;
    f ff_event_family;
begin
    for f in select x.* from ff_event_family x where x.notify = 'tick' order by x.family loop
        select max(y.event_id) into v_last
          from (select x.event_id from (
                    (select x.gen, x.ord, x.event_id from ff_event_log x
                      where x.family = f.family order by x.gen desc, x.ord desc, x.event_id desc limit 100)
                    union all
                    -- Ends of leases that came with a completion.
                    (select x.gen, x.ord, x.event_id from ff_event_log x
                      where f.family = 'lease' and x.family = 'completion' and x.lease_type is not null
                      order by x.gen desc, x.ord desc, x.event_id desc limit 100)) x
                 order by x.gen desc, x.ord desc, x.event_id desc limit 100) y;
        continue when v_last <= f.notified_event_id or v_last is null;
        -- Who skips locked rows may wait after all, if one caller has changed the row since the statement began and
        -- the next one holds it.
        continue when not ff__sweep_guard('ff_event_family ' || f.family);
        perform from ff_event_family x
          where x.family = f.family and x.notify = 'tick' and x.notified_event_id < v_last for update skip locked;
        if found then
            perform ff__ring(f.family);
            update ff_event_family x set notified_event_id = v_last where x.family = f.family;
            v_rung := v_rung + 1;
        end if;
    end loop;
    return v_rung;
end
$$;
