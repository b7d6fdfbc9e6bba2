-- Locks: schedules, without waiting. Safe to run many at once: the transaction that has locked a schedule fires its tick
-- and moves it on.
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
                perform ff__sweep_healed('fire_schedules', array[v_id]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            -- Backed off, so that it does not stand in front of the others. Its tick is still owed.
            errors := errors + 1;
            begin
                update ff_schedule x
                   set error_count = x.error_count + 1, last_error = left(sqlerrm, 1000), last_error_at_ms = v_now,
                       due_at_ms = v_now + least(300000, 1000 * 2 ^ least(x.error_count, 12))::bigint
                 where x.schedule_id = s.schedule_id;
            exception when others then
                -- The row itself cannot be updated: recorded as for other steps.
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                perform ff__sweep_failed('fire_schedules', v_id, sqlstate, sqlerrm);
            end;
        end;
    end loop;
    v_now := ff__now_ms();
    -- If other transactions have locked all that is due, they go on with it.
    more := v_moved > 0 and exists (select from ff_schedule x where x.due_at_ms <= v_now);
end
$$;

comment on function ff_fire_schedules(int) is
$$Creates the executions of schedules whose time has come: one for each tick that its catch-up policy wants, however
many call this at once. processed counts ticks. One that cannot be fired is retried after 1 s, then 2 s, up to
5 min, and says why in last_error; the others do not wait for it. A claim that finds nothing does the same.

Errors: invalid_input$$;
