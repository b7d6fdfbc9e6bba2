create or replace function ff_read_lease_events(
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
    attempt_index int,
    lease_id uuid,
    lease_epoch bigint,
    worker_id text,
    worker_instance_id text,
    reason text
)
language plpgsql stable security definer
as $$
begin
    return query
        select x.cursor, x.event_id, x.event_type, x.execution_id, x.flow_id, x.lane_id, x.namespace, x.tags,
               x.occurred_at_ms, x.attempt_index, x.lease_id, x.lease_epoch, x.worker_id,
               x.worker_instance_id, x.reason
          from @extschema@.ff_read_events('lease', p_after, p_limit, p_namespace, p_tags, p_execution_id,
                              p_event_types, p_partition, p_max_scan, p_watermark) x;
end
$$;

comment on function ff_read_lease_events(text, int, text, jsonb, text, text[], int, int, boolean) is
$$Lease events: ff_read_events of the family lease, with its columns.

Outcomes: event_type = acquired | reclaimed | renewed | released | expired | revoked | watermark
Nullable: event_id, execution_id, flow_id, lane_id, namespace, tags, occurred_at_ms, attempt_index, lease_id
Nullable: lease_epoch, worker_id, worker_instance_id, reason
Errors: invalid_input, invalid_execution_id, invalid_cursor, cursor_expired, event_generation_stale$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
