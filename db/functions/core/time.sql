-- The latest time that the engine stores: the end of the year 9999, which every driver can read. With p_from_ms: the
-- longest duration that can be added to that time.
create or replace function ff__max_time_ms(p_from_ms bigint default 0) returns bigint
language sql immutable parallel safe
as $$ select 253402300799999 - p_from_ms $$;

-- The clock, for function bodies: their search_path does not include the schema of ff_now_ms, which tests replace.
-- Plain SQL, so that both are inlined.
create or replace function ff__now_ms() returns bigint
language sql volatile parallel safe
as $$ select @extschema@.ff_now_ms() $$;

-- p_from_ms plus a duration that was checked at an earlier time: at most ff__max_time_ms. NULL without a duration.
-- Written so that it is inlined.
create or replace function ff__time_after(p_from_ms bigint, p_duration_ms bigint) returns bigint
language sql immutable parallel safe
as $$
    select case when p_duration_ms > ff__max_time_ms(p_from_ms) then ff__max_time_ms()
                else p_from_ms + p_duration_ms end
$$;
