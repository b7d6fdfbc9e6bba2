-- Locks an execution (waits for it) and opens an operation on it: what decides, the time, read after the lock, and the
-- ord of its events: never before this transaction, never before an earlier event of the same execution.
-- A row of NULLs if there is none. ff__pick reads the same columns.
create or replace function ff__open(p_execution_id uuid) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec;
begin
    select c.execution_id, c.partition_key, c.flow_id, c.namespace, c.lane_id, c.priority, c.lifecycle_phase,
           c.ownership_state, c.eligibility_state, c.attempt_state, c.public_state, c.current_attempt_index,
           c.current_attempt_id, c.total_attempt_count, c.retry_count, c.lease_reclaim_count, c.lease_id, c.lease_epoch,
           c.lease_expires_at_ms, c.attempt_timeout_at_ms, c.attempt_remaining_ms, c.deadline_at_ms, c.delay_until_ms,
           c.worker_id, c.worker_instance_id, c.attempt_timeout_ms, c.reserved_until_ms is not null,
           c.open_waitpoints > 0 or c.stream_open, c.limited, case when not c.tagged then '{}'::jsonb end,
           greatest(pg_current_xact_id()::text::bigint, c.last_event_ord), null::bigint, null, null
      into e
      from ff_exec_core c where c.execution_id = p_execution_id for update;
    e.now_ms := ff__now_ms();
    return e;
end
$$;
