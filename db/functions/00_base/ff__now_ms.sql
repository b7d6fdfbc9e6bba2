-- The clock, for the bodies of functions: their search_path does not have the schema of ff_now_ms, which tests replace.
-- Plain SQL, so that both are inlined.
create or replace function ff__now_ms() returns bigint
language sql volatile parallel safe
as $$ select @extschema@.ff_now_ms() $$;
