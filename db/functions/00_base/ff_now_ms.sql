-- The engine's clock: the only place where it looks at the time. VOLATILE and fresh on every call, because a
-- waiter must judge a lease by the time it got the lock. Plain SQL without SET, so that it is inlined everywhere;
-- it touches no object, so there is nothing to protect. Tests replace it to move the clock.
create or replace function ff_now_ms() returns bigint
language sql volatile parallel safe
as $$ select pg_catalog.floor(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000)::pg_catalog.int8 $$;

comment on function ff_now_ms() is
$$The engine's clock: milliseconds since the epoch, by the database server.$$;
