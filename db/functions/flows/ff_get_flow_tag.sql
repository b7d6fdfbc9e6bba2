create or replace function ff_get_flow_tag(p_flow_id uuid, p_key text)
returns table (value text)
language plpgsql stable security definer rows 1
as $$
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif p_key is null then
        perform ff__invalid('p_key', 'must not be null');
    end if;
    return query select f.tags ->> p_key from ff_flow_core f where f.flow_id = p_flow_id and f.tags ? p_key;
end
$$;

comment on function ff_get_flow_tag(uuid, text) is
$$The value of one tag of a flow. No row: the flow does not have it.

Rows: at most one
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
