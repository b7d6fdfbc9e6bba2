create or replace function ff_setting(p_name text, out value text)
language plpgsql stable security definer
set search_path from current
as $$
begin
    if p_name is null then
        perform ff__invalid('p_name', 'must not be null');
    end if;
    select s.value into ff_setting.value from ff_setting s where s.name = p_name;
    if not found then
        perform ff__invalid('p_name', 'is not the name of a setting', jsonb_build_object('name', left(p_name, 64)));
    end if;
end
$$;

comment on function ff_setting(text) is
$$The value of one setting of the engine. All of them: select * from ff_setting.

Errors: invalid_input$$;
