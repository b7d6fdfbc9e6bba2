-- The first moment at which the clock on the wall shows p_local or a later time. A time that the clock shows twice is
-- the first of the two; one that it jumps over is the moment of the jump.
create or replace function ff__moment(p_local timestamp, p_zone text) returns bigint
language plpgsql immutable
as $$
declare
    c_far constant bigint := 93600000; -- 26 h: past any jump, also one over the date line
    v_local bigint := extract(epoch from p_local) * 1000;
    v_guess bigint := extract(epoch from p_local at time zone p_zone) * 1000;
    v_low bigint;
    v_high bigint;
    v_middle bigint;
begin
    v_low := v_local - ff__offset_ms(v_guess - c_far, p_zone);
    v_high := v_local - ff__offset_ms(v_guess + c_far, p_zone);
    if v_low = v_guess and v_high = v_guess then
        return v_guess;
    end if;
    for v_middle in select x.ms from unnest(array[v_low, v_guess, v_high]) x(ms) order by x.ms loop
        if ff__wall(v_middle, p_zone) = p_local then
            return v_middle;
        end if;
    end loop;
    -- Jumped over: the jump lies between what the two offsets make of it.
    select min(x.ms), max(x.ms) into v_low, v_high from unnest(array[v_low, v_guess, v_high]) x(ms);
    while v_high - v_low > 1000 loop
        v_middle := v_low + (v_high - v_low) / 2000 * 1000;
        if ff__wall(v_middle, p_zone) >= p_local then
            v_high := v_middle;
        else
            v_low := v_middle;
        end if;
    end loop;
    return v_high;
end
$$;
