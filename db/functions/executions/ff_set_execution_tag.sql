-- Locks: the execution. Repeatable.
create or replace function ff_set_execution_tag(p_execution_id text, p_key text, p_value text, out changed boolean)
language plpgsql volatile security definer
as $$
declare
    v_old text;
    e ff_exec;
begin
    perform ff__check_tag_key(p_key);
    if octet_length(p_value) > 4096 then
        perform ff__invalid('p_value', 'must have at most 4096 bytes');
    end if;
    e := ff__lock_execution(p_execution_id);
    select i.tags ->> p_key into v_old from ff_exec_input i where i.execution_id = e.execution_id;
    changed := v_old is distinct from p_value;
    if changed then
        perform @extschema@.ff_set_execution_tags(p_execution_id, jsonb_build_object(p_key, p_value));
    end if;
end
$$;

comment on function ff_set_execution_tag(text, text, text) is
$$Sets one tag of an execution; NULL deletes it. Allowed in every state.

Errors: invalid_input, invalid_execution_id, invalid_tag_key, execution_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
