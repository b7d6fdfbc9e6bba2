-- The ticks of a schedule that are due and wanted, the oldest first: none is older than next_fire_at_ms. latest: the
-- last one. skip: that, if it is not older than the grace. all: the last max_catch_up.
create or replace function ff__due_ticks(s ff_schedule, c ff_cron, p_now_ms bigint) returns bigint[]
language plpgsql immutable
as $$
declare
    v_tick bigint := ff__tick(s, c, p_now_ms, -1);
    v_ticks bigint[] := '{}'::bigint[];
begin
    -- The stored tick is owed, also when the rules of the time zone have changed since.
    v_tick := greatest(v_tick, s.next_fire_at_ms);
    loop
        v_ticks := v_tick || v_ticks;
        exit when s.catch_up <> 'all' or cardinality(v_ticks) >= s.max_catch_up;
        v_tick := ff__tick(s, c, v_tick - 1, -1);
        exit when v_tick is null or v_tick < s.next_fire_at_ms;
    end loop;
    if s.catch_up = 'skip' and p_now_ms - v_ticks[1] > s.grace_ms then
        return '{}'::bigint[];
    end if;
    return v_ticks;
end
$$;
