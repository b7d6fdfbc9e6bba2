-- The channel on which a watched stream rings.
create or replace function ff__stream_channel(p_execution_id uuid, p_attempt_index int) returns text
language sql immutable parallel safe
as $$ select 'ff_stream_' || p_execution_id::text || '_' || p_attempt_index::text $$;
