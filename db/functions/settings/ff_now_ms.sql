-- The engine's clock: the only function that reads the time. VOLATILE, because a transaction that waited for a row lock
-- must check the lease against the time at which it got the lock. Plain SQL without SET, so that it can be inlined; it
-- accesses no object, so no SET search_path is needed. Tests replace it to move the clock.
create or replace function ff_now_ms() returns bigint
language sql volatile parallel safe
as $$ select pg_catalog.floor(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000)::pg_catalog.int8 $$;

comment on function ff_now_ms() is
$$The engine's clock: milliseconds since the Unix epoch, from the database server.$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_signaler, ff_operator, ff_admin
