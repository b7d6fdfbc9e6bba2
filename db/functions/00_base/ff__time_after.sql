-- p_from_ms plus a duration that was checked earlier, when less time had passed: at most ff__last_ms. NULL without a
-- duration. Written so that it is inlined.
create or replace function ff__time_after(p_from_ms bigint, p_duration_ms bigint) returns bigint
language sql immutable parallel safe
as $$
    select case when p_duration_ms > ff__last_ms(p_from_ms) then ff__last_ms() else p_from_ms + p_duration_ms end
$$;
