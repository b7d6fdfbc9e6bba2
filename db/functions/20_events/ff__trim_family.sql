-- Deletes the oldest events of a family whose row is locked; how many. It takes whole rows of ff_event_log until they hold
-- p_limit events: the last one may hold more. A row that is a completion and the end of a lease goes with the second of the
-- two; with the first it becomes the other one.
create or replace function ff__trim_family(f ff_event_family, p_now_ms bigint, p_gen int, p_horizon bigint, p_limit int)
returns int
language plpgsql volatile
as $$
declare
    v_count int;
    v_stop ff_event_place;
    v_last bigint;
begin
    -- The oldest is not old enough: nothing is.
    if (select x.occurred_at_ms > p_now_ms - f.retention_ms
          from ff__expired_event_rows(f.family, f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id, p_gen, p_horizon, 1) x
         limit 1) is not false then
        return 0;
    end if;
    -- The last of the old ones before the first that is not: only a prefix of the order may go.
    select y.gen, y.ord, y.event_id, y.last_id, y.total into v_stop.gen, v_stop.ord, v_stop.event_id, v_last, v_count
      from (select x.gen, x.ord, x.event_id, x.size,
                   x.event_id + 2 * (x.size - 1) - (x.family <> f.family)::int as last_id,
                   sum(x.size) over w as total,
                   bool_and(x.occurred_at_ms <= p_now_ms - f.retention_ms) over w as old
              from ff__expired_event_rows(f.family, f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id, p_gen, p_horizon, p_limit) x
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
