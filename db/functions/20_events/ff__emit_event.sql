-- The one statement that writes events of executions: a row of ff_event_log, for one execution, or with arrays for many
-- (ff__emit_many). p_lease_type with the family completion: the same row is the end of the lease too. A muted type is left
-- out, be it one of the two; a family that notifies at commit rings, but for a renewal. tags are NULL for none.
-- Returns the id of the event (of the first of many), NULL if it is muted.
create or replace function ff__emit_event(
    p_family text,
    p_event_type text,
    p_reason text,
    p_now_ms bigint,
    p_ord bigint,
    p_execution_id uuid,
    p_attempt_index int,
    p_flow_id uuid,
    p_lane_id text,
    p_namespace text,
    p_tags jsonb,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_worker_id text default null,
    p_worker_instance_id text default null,
    p_lease_type text default null,
    p_lease_reason text default null,
    p_details jsonb default null,
    p_suspension_id uuid default null,
    p_waitpoint_id uuid default null,
    p_signal_id uuid default null,
    p_source_type text default null,
    p_source_identity text default null,
    p_effect text default null,
    p_size int default null,
    p_span int default null,
    p_first_id_ms bigint default null,
    p_last_id_ms bigint default null,
    p_execution_ids uuid[] default null,
    p_attempt_indexes int[] default null,
    p_flow_ids uuid[] default null,
    p_lane_ids text[] default null,
    p_namespaces text[] default null,
    p_tag_sets jsonb[] default null,
    p_lease_ids uuid[] default null,
    p_lease_epochs bigint[] default null
) returns bigint
language plpgsql volatile
as $$
declare
    v_event_id bigint;
begin
    insert into ff_event_log (
        family, gen, ord, event_id, occurred_at_ms, event_type, reason, lease_type, lease_reason,
        execution_id, attempt_index, flow_id, lane_id, namespace, tags, lease_id, lease_epoch, worker_id,
        worker_instance_id, details, suspension_id, waitpoint_id, signal_id, source_type, source_identity, effect,
        size, span, first_id_ms, last_id_ms, execution_ids, attempt_indexes, flow_ids, lane_ids, namespaces, tag_sets,
        lease_ids, lease_epochs)
    select p_family, f.gen, p_ord, nextval('ff_event_id_seq'), p_now_ms, p_event_type, p_reason,
           case when p_lease_type is not null
                then (select p_lease_type from ff_event_family y
                       where y.family = 'lease' and p_lease_type <> all (y.muted) and '*' <> all (y.muted)
                         and (y.notify <> 'commit' or ff__ring('lease'))) end,
           p_lease_reason, p_execution_id, p_attempt_index, p_flow_id, p_lane_id, p_namespace, p_tags, p_lease_id,
           p_lease_epoch, p_worker_id, p_worker_instance_id, p_details, p_suspension_id, p_waitpoint_id, p_signal_id,
           p_source_type, p_source_identity, p_effect, p_size, p_span, p_first_id_ms, p_last_id_ms, p_execution_ids,
           p_attempt_indexes, p_flow_ids, p_lane_ids, p_namespaces, p_tag_sets, p_lease_ids, p_lease_epochs
      from ff_event_family f
     where f.family = p_family and p_event_type <> all (f.muted) and '*' <> all (f.muted)
       and (f.notify <> 'commit' or p_event_type = 'renewed' or ff__ring(p_family))
    returning event_id into v_event_id;
    if v_event_id is null and p_lease_type is not null then
        -- The completion is muted: the end of the lease stands alone.
        perform ff__emit_event('lease', p_lease_type, p_lease_reason, p_now_ms, p_ord, p_execution_id, p_attempt_index,
                               p_flow_id, p_lane_id, p_namespace, p_tags, p_lease_id, p_lease_epoch, p_worker_id,
                               p_worker_instance_id, null, null, null, null, null, null, null, null, null, p_size, p_span,
                               p_first_id_ms, p_last_id_ms, p_execution_ids, p_attempt_indexes, p_flow_ids, p_lane_ids,
                               p_namespaces, p_tag_sets, p_lease_ids, p_lease_epochs);
    end if;
    return v_event_id;
end
$$;
