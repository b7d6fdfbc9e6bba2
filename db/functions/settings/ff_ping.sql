create or replace function ff_ping(out ok boolean, out server_time_ms bigint, out schema_version int)
language sql volatile security definer
as $$ select true, ff__now_ms(), (select max(v.version) from ff_schema_version v) $$;

comment on function ff_ping() is
$$Checks that the engine is reachable. Returns its clock and its schema version.

Nullable: schema_version$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_signaler, ff_operator, ff_admin
