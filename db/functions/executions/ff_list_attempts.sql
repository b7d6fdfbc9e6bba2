create or replace function ff_list_attempts(p_execution_id text)
returns table (
    attempt_index int, attempt_id uuid, attempt_type text, state text, previous_attempt_index int, worker_id text,
    worker_instance_id text, lease_id uuid, lease_epoch bigint, started_at_ms bigint, resumed_at_ms bigint,
    suspended_at_ms bigint, ended_at_ms bigint, outcome text, failure_reason text, failure_category text,
    classification text, result_encoding text, progress_pct int, progress_message text, progress_updated_at_ms bigint,
    release_op text, release_at_ms bigint
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select a.attempt_index, a.attempt_id, a.attempt_type, a.state, a.previous_attempt_index, a.worker_id,
               a.worker_instance_id, a.lease_id, a.lease_epoch, a.started_at_ms, a.resumed_at_ms, a.suspended_at_ms,
               a.ended_at_ms, a.outcome, a.failure_reason, a.failure_category, a.classification, a.result_encoding,
               a.progress_pct, a.progress_message, a.progress_updated_at_ms, a.release_op, a.release_at_ms
          from ff_attempt a where a.execution_id = v_id order by a.attempt_index;
end
$$;

comment on function ff_list_attempts(text) is
$$The attempts of an execution, ordered by index, without their results.

Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Outcomes: state = started | suspended | ended_success | ended_failure | ended_cancelled | interrupted_reclaimed
Outcomes: outcome = success | failure | cancelled | expired | skipped | interrupted_reclaimed
Nullable: previous_attempt_index, resumed_at_ms, suspended_at_ms, ended_at_ms, outcome, failure_reason
Nullable: failure_category, classification, result_encoding, progress_pct, progress_message, progress_updated_at_ms
Nullable: release_op, release_at_ms
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
