-- The execution id as callers see it: {fp:N}:uuid. The casts keep it immutable, or it would not be inlined, and
-- PostgreSQL parses an SQL function anew for each call that it cannot inline.
create or replace function ff__wire_id(p_partition smallint, p_execution_id uuid) returns text
language sql immutable parallel safe
as $$ select '{fp:' || p_partition::text || '}:' || p_execution_id::text $$;
