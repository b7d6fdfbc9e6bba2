create or replace function ff_read_operator_events(
    p_after text default null,
    p_limit int default 256,
    p_namespace text default null,
    p_tags jsonb default null,
    p_execution_id text default null,
    p_event_types text[] default null,
    p_partition int default null,
    p_max_scan int default 10000,
    p_watermark boolean default false
) returns table (
    cursor text,
    event_id bigint,
    event_type text,
    execution_id text,
    flow_id uuid,
    lane_id text,
    namespace text,
    tags jsonb,
    occurred_at_ms bigint,
    reason text,
    details jsonb
)
language plpgsql stable security definer
as $$
begin
    return query
        select x.cursor, x.event_id, x.event_type, x.execution_id, x.flow_id, x.lane_id, x.namespace, x.tags,
               x.occurred_at_ms, x.reason, x.details
          from @extschema@.ff_read_events('operator', p_after, p_limit, p_namespace, p_tags, p_execution_id,
                              p_event_types, p_partition, p_max_scan, p_watermark) x;
end
$$;

comment on function ff_read_operator_events(text, int, text, jsonb, text, text[], int, int, boolean) is
$$Operator actions: ff_read_events of the family operator, with its columns.

Outcomes: event_type = overridden | cancelled | lease_revoked | priority_changed | replayed | resumed
Outcomes: event_type = lane_state_changed | flow_cancel_requested | approval_delivered | suspension_escalated
Outcomes: event_type = hmac_seeded | hmac_rotated | waitpoint_reminted | watermark
Nullable: event_id, execution_id, flow_id, lane_id, namespace, tags, occurred_at_ms, reason, details
Errors: invalid_input, invalid_execution_id, invalid_cursor, cursor_expired, event_generation_stale$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
