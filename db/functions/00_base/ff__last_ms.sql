-- The last time that the engine stores: the end of the year 9999, which every driver can read. With p_from_ms: the longest
-- duration that can be added to that time.
create or replace function ff__last_ms(p_from_ms bigint default 0) returns bigint
language sql immutable parallel safe
as $$ select 253402300799999 - p_from_ms $$;
