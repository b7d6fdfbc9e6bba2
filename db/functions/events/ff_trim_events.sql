-- Locks: the family's row (skipped if another transaction has locked it), then its oldest events. Never waits.
create or replace function ff_trim_events(
    p_limit int default 10000, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
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
        -- One transaction at a time; ticks that notify the family take the same lock (ff__notify_due_families).
        continue when not ff__try_lock_step('ff_event_family ' || f.family);
        select x.* into f from ff_event_family x where x.family = f.family for update skip locked;
        continue when not found;
        begin
            v_count := ff__trim_family(f, v_now, v_gen, v_horizon, p_limit - processed);
            processed := processed + v_count;
            if ff__is_backed_off('trim_events', f.family) then
                perform ff__delete_sweep_errors('trim_events', array[f.family]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__record_sweep_error('trim_events', f.family, sqlstate, sqlerrm);
        end;
    end loop;
    more := processed >= p_limit and p_limit > 0;
end
$$;

comment on function ff_trim_events(int) is
$$Deletes events older than the retention of their family (7 days unless changed with ff_set_event_family), oldest
first, until p_limit (up to 100000) are deleted; events written by one call are deleted together. more: whether to call
again. A reader whose cursor is older gets cursor_expired.

Errors: invalid_input, event_generation_stale$$;
-- grant: ff_admin

-- Deletes the oldest events of a family whose row is locked; returns how many. Deletes whole rows of ff_event_log until
-- they hold p_limit events: the last one may hold more. A row that holds a completion and the end of a lease is deleted
-- with the second of the two; the first trim removes only its own event from the row.
create or replace function ff__trim_family(f ff_event_family, p_now_ms bigint, p_gen int, p_horizon bigint, p_limit int)
returns int
language plpgsql volatile
as $$
declare
    v_count int;
    v_stop ff_event_place;
    v_last bigint;
begin
    -- If the oldest row has not expired, none has.
    if (select x.occurred_at_ms > p_now_ms - f.retention_ms
          from ff__expired_event_rows(f.family, f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id, p_gen, p_horizon, 1) x
         limit 1) is not false then
        return 0;
    end if;
    -- The last expired row before the first that has not expired: only a prefix of the order is deleted.
    select y.gen, y.ord, y.event_id, y.last_id, y.total into v_stop.gen, v_stop.ord, v_stop.event_id, v_last, v_count
      from (select x.gen, x.ord, x.event_id, x.size,
                   x.event_id + 2 * (x.size - 1) - (x.family <> f.family)::int as last_id,
                   sum(x.size) over w as total,
                   bool_and(x.occurred_at_ms <= p_now_ms - f.retention_ms) over w as old
              from ff__expired_event_rows(f.family, f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id, p_gen, p_horizon,
                                          p_limit) x
            window w as (order by x.gen, x.ord, x.event_id rows unbounded preceding)) y
     where y.old and y.total - y.size < p_limit order by y.gen desc, y.ord desc, y.event_id desc limit 1;
    if v_stop.gen is null then
        return 0;
    end if;
    if f.family = 'lease' then
        update ff_event_log x set lease_type = null, lease_reason = null
         where x.family = 'completion' and x.lease_type is not null
           and (x.gen, x.ord, x.event_id) <= (v_stop.gen, v_stop.ord, v_stop.event_id)
           and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id);
    elsif f.family = 'completion' then
        update ff_event_log x set
            family = 'lease', event_id = x.event_id - 1, event_type = x.lease_type, reason = x.lease_reason,
            lease_type = null, lease_reason = null
         where x.family = 'completion' and x.lease_type is not null
           and (x.gen, x.ord, x.event_id) <= (v_stop.gen, v_stop.ord, v_stop.event_id)
           and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id);
    end if;
    delete from ff_event_log x
     where x.family = f.family and (x.gen, x.ord, x.event_id) <= (v_stop.gen, v_stop.ord, v_stop.event_id)
       and (x.gen, x.ord, x.event_id) > (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id);
    update ff_event_family x set trimmed_gen = v_stop.gen, trimmed_ord = v_stop.ord, trimmed_event_id = v_last
     where x.family = f.family;
    return v_count;
end
$$;

-- The oldest rows that hold events of a family, after a place and below (p_gen, p_horizon), at most p_limit, in order.
-- Plain SQL, so that it is inlined.
create or replace function ff__expired_event_rows(
    p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int, p_horizon bigint,
    p_limit int
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
            -- Ends of leases stored in completion rows.
            (select y.family, y.gen, y.ord, y.event_id, y.occurred_at_ms, coalesce(y.size, 1)::int
               from ff_event_log y
              where p_family = 'lease' and y.family = 'completion' and y.lease_type is not null
                and (y.gen, y.ord) < (p_gen, p_horizon)
                and (y.gen, y.ord, y.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
              order by y.gen, y.ord, y.event_id limit p_limit)) x
     order by x.gen, x.ord, x.event_id limit p_limit
$$;
