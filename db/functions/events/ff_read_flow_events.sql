create or replace function ff_read_flow_events(
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
    flow_id uuid,
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
        select x.cursor, x.event_id, x.event_type, x.flow_id, x.namespace, x.tags, x.occurred_at_ms, x.reason,
               x.details
          from @extschema@.ff_read_events('flow', p_after, p_limit, p_namespace, p_tags, p_execution_id,
                              p_event_types, p_partition, p_max_scan, p_watermark) x;
end
$$;

comment on function ff_read_flow_events(text, int, text, jsonb, text, text[], int, int, boolean) is
$$Flow events: ff_read_events of the family flow, with its columns.

Outcomes: event_type = created | started | reopened | completed | failed | cancel_requested | watermark
Nullable: event_id, flow_id, namespace, tags, occurred_at_ms, reason, details
Errors: invalid_input, invalid_execution_id, invalid_cursor, cursor_expired, event_generation_stale$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
