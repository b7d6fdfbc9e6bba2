-- A tag key: area.name in lower case, at most 128 bytes. Errors: invalid_input (NULL), invalid_tag_key.
create or replace function ff__check_tag_key(p_key text) returns void
language plpgsql stable
as $$
begin
    if p_key is null then
        perform ff__invalid('p_key', 'must not be null');
    elsif octet_length(p_key) > 128 or p_key !~ E'^[a-z][a-z0-9_]*\\.[a-z0-9_][a-z0-9_.]*$' then
        perform ff__raise('invalid_tag_key', 'the tag key does not have the form area.name',
                          jsonb_build_object('key', left(p_key, 128)));
    end if;
end
$$;
