-- The partition of an id: its last byte.
create or replace function ff__partition(p_id uuid) returns smallint
language sql immutable parallel safe
as $$ select get_byte(uuid_send(p_id), 15)::smallint $$;
