-- Locks: schedules, without waiting. Safe to run many at once: who holds a schedule's row fires its tick and moves it
-- on in one transaction.
create or replace function ff_fire_schedules(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_moved boolean := false;
    v_ids text[];
    v_seen text[] := '{}'::text[];
    v_id text;
    v_busy int;
    v_failed boolean;
    s ff_schedule;
begin
    perform ff__check_limit(p_limit, 100000);
    v_failed := exists (select from ff_reconciler_error r where r.name = 'fire_schedules' and r.row_key <> '');
    processed := 0;
    errors := 0;
    for v_pass in 1..10 loop
        v_ids := array(
            select x.schedule_id from ff_schedule x
             where x.due_at_ms <= v_now and x.schedule_id not in (select unnest(v_seen))
               and not (v_failed and ff__put_off('fire_schedules', x.schedule_id, v_now))
             order by x.due_at_ms limit p_limit);
        v_busy := 0;
        foreach v_id in array v_ids loop
            exit when processed >= p_limit;
            select x.* into s from ff_schedule x where x.schedule_id = v_id for update skip locked;
            v_now := ff__now_ms();
            -- Somebody else has it, or has had it.
            if s.due_at_ms is null or s.due_at_ms > v_now then
                v_busy := v_busy + 1;
                continue;
            end if;
            v_moved := true;
            begin
                processed := processed + ff__fire_due(s, v_now, p_limit - processed);
                if v_failed then
                    perform ff__sweep_healed('fire_schedules', array[v_id]);
                end if;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                -- Put off, so that it does not stand in front of the others. Its tick is still owed.
                errors := errors + 1;
                begin
                    update ff_schedule x
                       set error_count = x.error_count + 1, last_error = left(sqlerrm, 1000), last_error_at_ms = v_now,
                           due_at_ms = v_now + least(300000, 1000 * 2 ^ least(x.error_count, 12))::bigint
                     where x.schedule_id = s.schedule_id;
                exception when others then
                    -- It is the row itself: a note puts it off, as for other steps.
                    if ff__stops_sweep(sqlstate) then
                        raise;
                    end if;
                    perform ff__sweep_failed('fire_schedules', v_id, sqlstate, sqlerrm);
                end;
            end;
        end loop;
        v_seen := v_seen || v_ids;
        -- Behind schedules that are busy there may be others.
        exit when v_busy = 0 or cardinality(v_ids) < p_limit or processed + errors >= p_limit;
    end loop;
    v_now := ff__now_ms();
    -- If others hold all that is due, they go on with it.
    more := v_moved and exists (select from ff_schedule x where x.due_at_ms <= v_now);
end
$$;

comment on function ff_fire_schedules(int) is
$$Creates the executions of schedules whose time has come: one for each tick that its catch-up policy wants, however
many call this at once. processed counts ticks. One that cannot be fired is put off for 1 s, then 2 s, up to
5 min, and says why in last_error; the others do not wait for it. A claim that finds nothing does the same.

Errors: invalid_input$$;
