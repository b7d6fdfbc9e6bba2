-- How far a time zone is ahead of UTC at a moment.
create or replace function ff__offset_ms(p_ms bigint, p_zone text) returns bigint
language sql immutable
as $$
    select (extract(epoch from ff__wall(p_ms, p_zone)) * 1000)::bigint - p_ms
$$;
