-- The execution id as callers see it: {fp:N}:uuid.
create or replace function ff__wire_id(p_partition smallint, p_execution_id uuid) returns text
language sql immutable parallel safe
as $$ select '{fp:' || p_partition || '}:' || p_execution_id $$;
