-- A set of tags: an object of string values, at most 64, keys of the form area.name.
-- With p_allow_null a JSON null is a value too (it deletes the key). Errors: invalid_input, invalid_tag_key.
create or replace function ff__check_tags(p_arg text, p_tags jsonb, p_allow_null boolean default false) returns void
language plpgsql stable
as $$
declare
    v_key text;
    v_value jsonb;
    v_count int := 0;
begin
    if p_tags is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif jsonb_typeof(p_tags) <> 'object' then
        perform ff__invalid(p_arg, 'must be a json object');
    end if;
    for v_key, v_value in select t.key, t.value from jsonb_each(p_tags) t loop
        perform ff__check_tag_key(v_key);
        if jsonb_typeof(v_value) = 'null' and p_allow_null then
            continue;
        elsif jsonb_typeof(v_value) <> 'string' then
            perform ff__invalid(p_arg, 'must have string values only', jsonb_build_object('key', v_key));
        elsif octet_length(v_value #>> '{}') > 4096 then
            perform ff__invalid(p_arg, 'has a value longer than 4096 bytes', jsonb_build_object('key', v_key));
        end if;
        v_count := v_count + 1;
    end loop;
    if v_count > 64 then
        perform ff__invalid(p_arg, 'has more than 64 tags');
    end if;
end
$$;
