create or replace function ff_list_children(p_execution_id text, p_after text default null, p_limit int default 100)
returns table (
    cursor text, execution_id text, execution_kind text, lane_id text, public_state text, detached boolean,
    created_at_ms bigint, terminal_at_ms bigint
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    v_after ff_time_cursor := ff__decode_time_cursor(p_after);
    -- Scalar variables: the planner cannot use the fields of a record.
    v_after_ms bigint := coalesce(v_after.at_ms, -1);
    v_after_id uuid := coalesce(v_after.id, '00000000-0000-0000-0000-000000000000');
begin
    perform ff__check_limit(p_limit);
    return query
        select k.created_at_ms::text || '-' || k.child_id::text, ff__wire_id(c.partition_key, c.execution_id),
               c.execution_kind, c.lane_id, w.public_state, k.detached, c.created_at_ms, c.terminal_at_ms
          from ff_child k
          join ff_execution c on c.execution_id = k.child_id
          join ff_state_word w on w.state = c.state
         where k.parent_id = v_id and (k.created_at_ms, k.child_id) > (v_after_ms, v_after_id)
         order by k.created_at_ms, k.child_id limit p_limit;
end
$$;

comment on function ff_list_children(text, text, int) is
$$The executions created with this one as their parent, in the order of their creation. p_after: the cursor of the last
row read; it stays valid after that row is deleted. Children are listed as long as they are kept, also after the parent
was deleted. No rows: the execution has no children, or there is no such execution.

Nullable: terminal_at_ms
Errors: invalid_input, invalid_execution_id, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
