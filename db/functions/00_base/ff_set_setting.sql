-- Locks the setting's row. Errors: invalid_input. Repeating a call changes nothing.
create or replace function ff_set_setting(p_name text, p_value text, out name text, out value text, out previous text)
language plpgsql volatile security definer
set search_path from current
as $$
begin
    if p_name is null then
        perform ff__invalid('p_name', 'must not be null');
    elsif p_value is null then
        perform ff__invalid('p_value', 'must not be null');
    end if;
    select s.name, s.value into ff_set_setting.name, previous from ff_setting s where s.name = p_name for update;
    if not found then
        perform ff__invalid('p_name', 'is not the name of a setting', jsonb_build_object('name', left(p_name, 64)));
    end if;
    if p_name = 'notify' and p_value not in ('on', 'off') then
        perform ff__invalid('p_value', 'must be on or off');
    elsif p_name = 'retention_ms' and p_value !~ '^(0|[1-9][0-9]{0,14})$' then
        perform ff__invalid('p_value', 'must be a number of milliseconds, 0 or more');
    elsif p_name like E'max\\_%' and p_value !~ '^[1-9][0-9]{0,8}$' then
        perform ff__invalid('p_value', 'must be a number, 1 or more');
    end if;
    value := p_value;
    update ff_setting s set value = p_value where s.name = p_name and s.value <> p_value;
end
$$;

comment on function ff_set_setting(text, text) is
$$Changes one setting of the engine; answers with the value before.
notify: on | off. retention_ms: milliseconds. max_*: the engine's limits, as numbers.

Errors: invalid_input$$;
