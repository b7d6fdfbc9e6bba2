create or replace function ff_get_execution_result(p_execution_id text, p_attempt_index int default null)
returns table (
    attempt_index int, outcome text, public_state text, terminal_outcome text, result bytea, result_encoding text,
    failure_reason text, failure_category text, ended_at_ms bigint
)
language plpgsql stable security definer rows 1
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if p_attempt_index is not null then
        return query
            select a.attempt_index, a.outcome, c.public_state, c.terminal_outcome, a.result, a.result_encoding,
                   a.failure_reason, a.failure_category, a.ended_at_ms
              from ff_exec_core c join ff_attempt a on a.execution_id = c.execution_id
             where c.execution_id = v_id and a.attempt_index = p_attempt_index;
    else
        -- The attempt that ended the current run. There is none while the run continues, and none for a retry or replay
        -- that ended before its claim, even in the same millisecond in which the attempt before it ended.
        return query
            select a.attempt_index, a.attempt_outcome, w.public_state, w.terminal_outcome, a.result, a.result_encoding,
                   coalesce(a.attempt_failure_reason, c.failure_reason),
                   coalesce(a.attempt_failure_category, c.failure_category), c.terminal_at_ms
              from ff_execution c
              join ff_state_word w on w.state = c.state
              left join lateral (select c.* where c.attempt_ended_at_ms = c.terminal_at_ms
                                    and (c.attempt_outcome = 'success') = (c.state = 'completed')
                                    and (c.attempt_outcome <> 'failure' or c.state = 'failed')) a on true
             where c.execution_id = v_id;
    end if;
end
$$;

comment on function ff_get_execution_result(text, int) is
$$The result of an execution: that of the attempt that ended its current run; a row without a result until it has ended.
p_attempt_index: the result of that attempt, also from before a replay. No row: no such execution or attempt.

Rows: at most one
Outcomes: outcome = success | failure | cancelled | expired | skipped | interrupted_reclaimed
Nullable: attempt_index, outcome, result, result_encoding, failure_reason, failure_category, ended_at_ms
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
