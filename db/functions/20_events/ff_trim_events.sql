-- Locks: the family's row (skip locked: somebody else is at it), then its oldest events. Never waits.
create or replace function ff_trim_events(p_limit int default 10000, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_now bigint := ff_now_ms();
    v_gen int;
    v_horizon bigint;
    v_count int;
    f ff_event_family;
begin
    perform ff__check_limit(p_limit, 100000);
    v_gen := ff__event_generation();
    v_horizon := ff__event_horizon();
    processed := 0;
    errors := 0;
    for f in
        select x.* from ff_event_family x
         where not exists (select from ff_reconciler_error r
                            where r.name = 'trim_events' and r.row_key = x.family and r.next_retry_at_ms > v_now)
         order by x.family
    loop
        exit when processed >= p_limit;
        -- One at a time, as ticks that ring for it (ff__ring_due_families).
        continue when not ff__sweep_guard('ff_event_family ' || f.family);
        select x.* into f from ff_event_family x where x.family = f.family for update skip locked;
        continue when not found;
        begin
            v_count := ff__trim_family(f, v_now, v_gen, v_horizon, p_limit - processed);
            processed := processed + v_count;
            if ff__put_off('trim_events', f.family) then
                perform ff__sweep_healed('trim_events', array[f.family]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__sweep_failed('trim_events', f.family, sqlstate, sqlerrm);
        end;
    end loop;
    more := processed >= p_limit and p_limit > 0;
end
$$;

comment on function ff_trim_events(int) is
$$Deletes events that are older than the retention of their family (7 days unless ff_set_event_family says otherwise), oldest
first, until p_limit (up to 100000) are gone; what one call has written goes together. more says whether to call again. A
reader that had not come that far is told: cursor_expired.

Errors: invalid_input, event_generation_stale$$;
