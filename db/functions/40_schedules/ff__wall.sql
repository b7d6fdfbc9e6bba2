-- What the clock on the wall shows in a time zone at a moment.
create or replace function ff__wall(p_ms bigint, p_zone text) returns timestamp
language sql immutable
as $$
    select (timestamp 'epoch' + p_ms * interval '1 millisecond') at time zone 'UTC' at time zone p_zone
$$;
