-- Locks: the flow (waits for it). Repeatable.
create or replace function ff_set_flow_tag(p_flow_id uuid, p_key text, p_value text, out changed boolean)
language plpgsql volatile security definer
as $$
declare
    v_tags jsonb;
    f ff_flow_core;
begin
    perform ff__check_tag_key(p_key);
    if octet_length(p_value) > 4096 then
        perform ff__invalid('p_value', 'must have at most 4096 bytes');
    end if;
    f := ff__lock_flow(p_flow_id);
    changed := f.tags ->> p_key is distinct from p_value;
    if changed then
        v_tags := case when p_value is null then f.tags - p_key else f.tags || jsonb_build_object(p_key, p_value) end;
        perform ff__check_tags('p_value', v_tags);
        update ff_flow_core x set tags = v_tags, last_mutation_at_ms = ff__now_ms() where x.flow_id = p_flow_id;
    end if;
    perform ff__close_flow(p_flow_id);
end
$$;

comment on function ff_set_flow_tag(uuid, text, text) is
$$Sets one tag of a flow; NULL deletes it. Allowed in every state; does not change the graph revision.

Errors: invalid_input, invalid_tag_key, flow_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
