-- The cursor of a place in the order of events. ff__decode_event_cursor is its inverse.
create or replace function ff__encode_event_cursor(p_gen int, p_ord bigint, p_event_id bigint) returns text
language sql immutable parallel safe
as $$ select 'e1.' || p_gen::text || '.' || p_ord::text || '.' || p_event_id::text $$;
