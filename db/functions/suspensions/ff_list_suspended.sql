create or replace function ff_list_suspended(
    p_lane_id text default null,
    p_reason_code text default null,
    p_namespace text default null,
    p_partition int default null,
    p_after text default null,
    p_limit int default 100
) returns table (
    cursor text, execution_id text, suspension_id uuid, lane_id text, reason_code text, reason_detail text,
    suspended_at_ms bigint, timeout_at_ms bigint, timeout_behavior text, escalated_at_ms bigint, open_waitpoints int,
    last_signal_at_ms bigint, condition jsonb
)
language plpgsql stable security definer
-- The plan depends on whether there is a cursor: a generic plan would read every page from the start.
as $$
declare
    v_after ff_time_cursor := ff__decode_time_cursor(p_after);
    v_after_ms bigint := v_after.at_ms;
    v_after_id uuid := v_after.id;
begin
    perform ff__check_limit(p_limit);
    if p_reason_code is not null then
        perform ff__check_reason_code(p_reason_code);
    end if;
    if p_partition not between 0 and 255 then
        perform ff__invalid('p_partition', 'must be between 0 and 255', jsonb_build_object('value', p_partition));
    end if;
    return query
        select s.suspended_at_ms::text || '-' || s.execution_id::text, ff__wire_id(c.partition_key, c.execution_id),
               s.suspension_id, c.lane_id, s.reason_code, s.reason_detail, s.suspended_at_ms, s.timeout_at_ms,
               s.timeout_behavior, s.escalated_at_ms, c.open_waitpoints, s.last_signal_at_ms, s.condition
          from ff_suspension s join ff_execution c on c.execution_id = s.execution_id
         where s.closed_at_ms is null
           and (v_after_ms is null or (s.suspended_at_ms, s.execution_id) > (v_after_ms, v_after_id))
           and (p_lane_id is null or c.lane_id = p_lane_id)
           and (p_reason_code is null or s.reason_code = p_reason_code)
           and (p_namespace is null or c.namespace = p_namespace)
           and (p_partition is null or c.partition_key = p_partition)
         order by s.suspended_at_ms, s.execution_id limit p_limit;
end
$$;

comment on function ff_list_suspended(text, text, text, int, text, int) is
$$Suspended executions, longest suspended first, filtered by lane, reason, namespace or partition. p_after: the cursor
of the last row read; it stays valid after that execution has resumed.

Outcomes: reason_code = waiting_for_signal | waiting_for_approval | waiting_for_callback | waiting_for_tool_result
Outcomes: reason_code = waiting_for_operator_review | paused_by_policy | paused_by_budget | step_boundary
Outcomes: reason_code = manual_pause
Outcomes: timeout_behavior = fail | cancel | expire | auto_resume_with_timeout_signal | escalate
Nullable: reason_detail, timeout_at_ms, timeout_behavior, escalated_at_ms, last_signal_at_ms
Errors: invalid_input, invalid_reason_code, invalid_cursor$$;
-- grant: ff_operator, ff_admin
