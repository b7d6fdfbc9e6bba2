create or replace function ff_list_flow_members(
    p_flow_id uuid, p_public_state text default null, p_after text default null, p_limit int default 100
) returns table (
    execution_id text, execution_kind text, lane_id text, public_state text, current_attempt_index int,
    created_at_ms bigint, terminal_at_ms bigint
)
language plpgsql stable security definer
as $$
declare
    v_after uuid := ff__decode_execution_cursor(p_after);
begin
    perform ff__check_limit(p_limit);
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif p_public_state not in ('waiting', 'resumable', 'delayed', 'waiting_children', 'rate_limited', 'active',
                                 'suspended', 'completed', 'failed', 'cancelled', 'expired', 'skipped') then
        perform ff__invalid('p_public_state', 'is not a public state',
                            jsonb_build_object('value', left(p_public_state, 64)));
    end if;
    return query
        select ff__wire_id(c.partition_key, c.execution_id), c.execution_kind, c.lane_id, w.public_state,
               c.attempt_index, c.created_at_ms, c.terminal_at_ms
          from ff_execution c join ff_state_word w on w.state = c.state
         where c.flow_id = p_flow_id and (v_after is null or c.execution_id > v_after)
           and (p_public_state is null or w.public_state = p_public_state)
         order by c.execution_id limit p_limit;
end
$$;

comment on function ff_list_flow_members(uuid, text, text, int) is
$$Members of a flow in id order. p_after: the last execution_id read.

Outcomes: public_state = waiting | resumable | delayed | waiting_children | rate_limited | active | suspended
Outcomes: public_state = completed | failed | cancelled | expired | skipped
Nullable: current_attempt_index, terminal_at_ms
Errors: invalid_input, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
