create or replace function ff_list_executions(
    p_lane_id text default null,
    p_namespace text default null,
    p_public_state text default null,
    p_flow_id uuid default null,
    p_tag_key text default null,
    p_tag_value text default null,
    p_after text default null,
    p_limit int default 100
) returns table (
    cursor text, execution_id text, namespace text, lane_id text, flow_id uuid, execution_kind text, public_state text,
    priority int, created_at_ms bigint, terminal_at_ms bigint
)
language plpgsql stable security definer
-- The best index depends on the filters given, so a generic plan would be slow.
as $$
declare
    -- A scalar variable: the planner cannot use the field of a record, and would read every page from the start.
    v_after uuid := (ff__decode_time_cursor(p_after)).id;
    v_states ff_state[];
    v_tag jsonb;
begin
    perform ff__check_limit(p_limit);
    v_states := array(select w.state from ff_state_word w where w.public_state = p_public_state);
    if p_public_state is not null and v_states = '{}' then
        perform ff__invalid('p_public_state', 'is not a public state',
                            jsonb_build_object('value', left(p_public_state, 64)));
    elsif p_tag_key is not null then
        perform ff__check_tag_key(p_tag_key);
    elsif p_tag_value is not null then
        perform ff__invalid('p_tag_key', 'must be given with p_tag_value');
    end if;
    if p_tag_value is not null then
        v_tag := jsonb_build_object(p_tag_key, p_tag_value);
    end if;
    return query
        select c.created_at_ms::text || '-' || c.execution_id::text, ff__wire_id(c.partition_key, c.execution_id),
               c.namespace, c.lane_id, c.flow_id, c.execution_kind,
               (select w.public_state from ff_state_word w where w.state = c.state), c.priority, c.created_at_ms,
               c.terminal_at_ms
          from ff_execution c
         where (v_after is null or c.execution_id > v_after)
           and (p_lane_id is null or c.lane_id = p_lane_id)
           and (p_namespace is null or c.namespace = p_namespace)
           and (p_public_state is null or c.state = any (v_states))
           and (p_flow_id is null or c.flow_id = p_flow_id)
           and (p_tag_key is null or c.tags is not null)
           and (p_tag_key is null or v_tag is not null or c.tags ? p_tag_key)
           and (v_tag is null or c.tags @> v_tag)
         order by c.execution_id limit p_limit;
end
$$;

comment on function ff_list_executions(text, text, text, uuid, text, text, text, int) is
$$Executions in the order of their ids, which is the order of creation, filtered by lane, namespace, state, flow or tag.
p_after: the cursor of the last row read; it stays valid after that row is deleted.

Nullable: flow_id, terminal_at_ms
Errors: invalid_input, invalid_tag_key, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
