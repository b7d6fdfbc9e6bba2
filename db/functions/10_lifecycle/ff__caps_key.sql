-- The key of a set of capabilities in the ready index: the sorted tokens joined with commas ('' = none); above 256
-- bytes a space and their sha256, because an index entry has a limit. No token starts with a space.
create or replace function ff__caps_key(p_capabilities text[]) returns text
language sql stable parallel safe
as $$
    select case when octet_length(k.joined) <= 256 then k.joined
                else ' ' || encode(sha256(convert_to(k.joined, 'UTF8')), 'hex') end
      from (select array_to_string(p_capabilities, ',')) k(joined)
$$;
