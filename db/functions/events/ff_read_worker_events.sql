create or replace function ff_read_worker_events(
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
    namespace text,
    occurred_at_ms bigint,
    worker_id text,
    worker_instance_id text,
    reason text
)
language plpgsql stable security definer
as $$
begin
    return query
        select x.cursor, x.event_id, x.event_type, x.namespace, x.occurred_at_ms, x.worker_id,
               x.worker_instance_id, x.reason
          from @extschema@.ff_read_events('worker', p_after, p_limit, p_namespace, p_tags, p_execution_id,
                              p_event_types, p_partition, p_max_scan, p_watermark) x;
end
$$;

comment on function ff_read_worker_events(text, int, text, jsonb, text, text[], int, int, boolean) is
$$Worker registrations and removals: ff_read_events of the family worker, with its columns.

Outcomes: event_type = registered | marked_dead | ttl_swept | watermark
Nullable: event_id, namespace, occurred_at_ms, worker_id, worker_instance_id, reason
Errors: invalid_input, invalid_execution_id, invalid_cursor, cursor_expired, event_generation_stale$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
