-- A jsonb document as text, with json null for each value that is the string __ff_null__. In that text a value follows
-- a space or a bracket and no key does so without a colon behind it; a quote inside a string has a backslash before it.
create or replace function ff__null_values(p_document text) returns text
language sql immutable parallel safe
as $$
    select case when strpos(p_document, '__ff_null__') = 0 then p_document
                else regexp_replace(p_document, E'([ \\[])"__ff_null__"(?=[],}])', E'\\1null', 'g') end
$$;
