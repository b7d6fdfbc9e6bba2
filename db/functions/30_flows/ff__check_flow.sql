-- What a flow says about itself. Errors: invalid_input, invalid_tag_key.
create or replace function ff__check_flow(p_flow_kind text, p_namespace text, p_tags jsonb) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_flow_kind', p_flow_kind, 1, 128);
    perform ff__check_text('p_namespace', p_namespace, 1, 64);
    perform ff__check_tags('p_tags', p_tags);
end
$$;
