-- Locks the setting's row. Errors: invalid_input. Repeating a call changes nothing.
create or replace function ff_set_setting(p_name text, p_value text, out name text, out value text, out previous text)
language plpgsql volatile security definer
as $$
declare
    v_min bigint;
    v_max bigint;
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
    v_min := case p_name when 'max_execution_bytes' then 1024 when 'retention_ms' then 0
                         when 'retention_failed_ms' then 0 else 1 end;
    v_max := case p_name when 'max_execution_bytes' then 536870912
                         when 'retention_ms' then ff__max_time_ms(ff__now_ms())
                         when 'retention_failed_ms' then ff__max_time_ms(ff__now_ms()) else 999999999 end;
    if p_name = 'notify' then
        if p_value not in ('on', 'off') then
            perform ff__invalid('p_value', 'must be on or off');
        end if;
    elsif (p_value ~ '^(0|[1-9][0-9]{0,14})$' and p_value::numeric between v_min and v_max) is not true then
        perform ff__invalid('p_value', format('must be a whole number between %s and %s', v_min, v_max));
    end if;
    value := p_value;
    update ff_setting s set value = p_value where s.name = p_name and s.value <> p_value;
end
$$;

comment on function ff_set_setting(text, text) is
$$Changes one setting of the engine and returns the previous value.
notify: on | off. retention_ms, retention_failed_ms: milliseconds. max_*: the engine's limits, as numbers;
max_execution_bytes: 1024 to 536870912.

Errors: invalid_input$$;
-- grant: ff_admin
