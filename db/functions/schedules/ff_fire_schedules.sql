-- Locks: schedules, without waiting. Safe to run concurrently: the transaction that has locked a schedule fires its
-- tick and advances it.
create or replace function ff_fire_schedules(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_moved int := 0;
    v_failed boolean := exists (select from ff_reconciler_error r where r.name = 'fire_schedules' and r.row_key <> '');
    v_id text;
    s ff_schedule;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    for v_id in
        select x.schedule_id from ff_schedule x
         where x.due_at_ms <= v_now
           and not (v_failed and ff__is_backed_off('fire_schedules', x.schedule_id, v_now))
         order by x.due_at_ms
    loop
        exit when v_moved >= p_limit or processed >= p_limit;
        select x.* into s from ff_schedule x where x.schedule_id = v_id for update skip locked;
        v_now := ff__now_ms();
        continue when s.due_at_ms is null or s.due_at_ms > v_now;
        v_moved := v_moved + 1;
        begin
            processed := processed + ff__fire_due(s, v_now, p_limit - processed);
            if v_failed then
                perform ff__delete_sweep_errors('fire_schedules', array[v_id]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            -- Backed off, so that it does not precede other schedules. Its tick is still due.
            errors := errors + 1;
            begin
                update ff_schedule x
                   set error_count = x.error_count + 1, last_error = left(sqlerrm, 1000), last_error_at_ms = v_now,
                       due_at_ms = v_now + least(300000, 1000 * 2 ^ least(x.error_count, 12))::bigint
                 where x.schedule_id = s.schedule_id;
            exception when others then
                -- The row cannot be updated: recorded as for other steps.
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                perform ff__record_sweep_error('fire_schedules', v_id, sqlstate, sqlerrm);
            end;
        end;
    end loop;
    v_now := ff__now_ms();
    -- If other transactions have locked all due schedules, they process them.
    more := v_moved > 0 and exists (select from ff_schedule x where x.due_at_ms <= v_now);
end
$$;

comment on function ff_fire_schedules(int) is
$$Creates the executions of due schedules: one for each tick that the catch-up policy selects, also under concurrent
calls. processed counts ticks. A schedule that cannot be fired is retried after 1 s, then 2 s, up to 5 min, with the
reason in last_error; other schedules do not wait for it. A claim that finds nothing does the same.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin

-- Fires the due ticks of a schedule that the caller has locked, at most p_limit, and advances it to its next tick.
-- Returns the number of ticks. Errors: as ff_create_execution.
create or replace function ff__fire_due(s ff_schedule, p_now_ms bigint, p_limit int) returns int
language plpgsql volatile
as $$
declare
    c ff_cron := case when s.cron is not null then ff__parse_cron(s.cron) end;
    v_ticks bigint[] := ff__due_fire_times(s, c, p_now_ms);
    v_fired int := least(cardinality(v_ticks), p_limit);
    v_next bigint := case when cardinality(v_ticks) > p_limit then v_ticks[p_limit + 1]
                          else ff__next_fire_time(s, c, p_now_ms, 1) end;
begin
    for i in 1..v_fired loop
        perform ff__fire(s, v_ticks[i], ff__fire_id(s.schedule_id, v_ticks[i]), null);
    end loop;
    update ff_schedule x set
        next_fire_at_ms = v_next, due_at_ms = v_next,
        fire_count = x.fire_count + v_fired,
        last_fire_at_ms = coalesce(v_ticks[v_fired], x.last_fire_at_ms),
        last_fired_at_ms = case when v_fired > 0 then p_now_ms else x.last_fired_at_ms end,
        last_execution_id = case when v_fired > 0 then ff__fire_id(s.schedule_id, v_ticks[v_fired])
                                 else x.last_execution_id end,
        error_count = 0, last_error = null, last_error_at_ms = null
     where x.schedule_id = s.schedule_id;
    return v_fired;
end
$$;

-- The due ticks of a schedule that its catch-up policy selects, oldest first, none older than next_fire_at_ms. latest:
-- the last one. skip: the last one, unless older than the grace. all: the last max_catch_up.
create or replace function ff__due_fire_times(s ff_schedule, c ff_cron, p_now_ms bigint) returns bigint[]
language plpgsql immutable
as $$
declare
    v_tick bigint := ff__next_fire_time(s, c, p_now_ms, -1);
    v_ticks bigint[] := '{}'::bigint[];
begin
    -- The stored tick is fired even if the rules of the time zone have changed since.
    v_tick := greatest(v_tick, s.next_fire_at_ms);
    loop
        v_ticks := v_tick || v_ticks;
        exit when s.catch_up <> 'all' or cardinality(v_ticks) >= s.max_catch_up;
        v_tick := ff__next_fire_time(s, c, v_tick - 1, -1);
        exit when v_tick is null or v_tick < s.next_fire_at_ms;
    end loop;
    if s.catch_up = 'skip' and p_now_ms - v_ticks[1] > s.grace_ms then
        return '{}'::bigint[];
    end if;
    return v_ticks;
end
$$;

-- The execution id of a tick: deterministic, in UUIDv7 layout like generated ids, so that a tick has at most one
-- execution, even if its schedule is replaced or deleted.
create or replace function ff__fire_id(p_schedule_id text, p_fire_at_ms bigint) returns uuid
language sql immutable
as $$
    select overlay(overlay(
               (lpad(to_hex(p_fire_at_ms & 281474976710655), 12, '0')
                || substr(encode(sha256(convert_to(p_fire_at_ms || ' ' || p_schedule_id, 'UTF8')), 'hex'), 1, 20))
               placing '7' from 13) placing '8' from 17)::uuid
$$;
