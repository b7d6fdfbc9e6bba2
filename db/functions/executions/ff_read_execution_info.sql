create or replace function ff_read_execution_info(p_execution_id text)
returns table (
    execution_id text, namespace text, lane_id text, flow_id uuid, execution_kind text, priority int,
    lifecycle_phase text, ownership_state text, eligibility_state text, blocking_reason text, terminal_outcome text,
    attempt_state text, public_state text, blocking_detail text, current_attempt_index int, created_at_ms bigint,
    started_at_ms bigint, terminal_at_ms bigint
)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select ff__wire_id(c.partition_key, c.execution_id), c.namespace, c.lane_id, c.flow_id, x.execution_kind,
               c.priority, c.lifecycle_phase, c.ownership_state, c.eligibility_state, c.blocking_reason,
               c.terminal_outcome, c.attempt_state, c.public_state, c.blocking_detail, c.current_attempt_index,
               c.created_at_ms, c.started_at_ms, c.terminal_at_ms
          from ff_exec_core c join ff_execution x on x.execution_id = c.execution_id
         where c.execution_id = v_id;
end
$$;

comment on function ff_read_execution_info(text) is
$$Identity, state vector and times of an execution. No row: there is no such execution.

Rows: at most one
Nullable: flow_id, blocking_detail, current_attempt_index, started_at_ms, terminal_at_ms
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
