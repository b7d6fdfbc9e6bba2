-- The one statement that writes events of executions: a row of ff_event_log, for one execution, or with p_batch for many
-- (ff__emit_many). p_lease_type with the family completion: the same row is the end of the lease too. A muted type is left
-- out, be it one of the two; a family that notifies at commit rings, but for a renewal. p_tags: NULL for none.
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
    p_wait ff_event_wait default null,
    p_size int default null,
    p_batch ff_event_batch default null
) returns bigint
language plpgsql volatile
as $$
declare
    v_event_id bigint;
begin
    -- The columns in the order of the table: else the plan has a node more, which costs 18000 instructions.
    insert into ff_event_log (
        ord, event_id, occurred_at_ms, execution_id, flow_id, lease_id, lease_epoch, gen, attempt_index, family, event_type,
        lease_type, lease_reason, reason, lane_id, namespace, worker_id, worker_instance_id, tags, details, wait, size, batch)
    select p_ord, nextval('ff_event_id_seq'), p_now_ms, p_execution_id, p_flow_id, p_lease_id, p_lease_epoch, g.gen,
           p_attempt_index, p_family, p_event_type,
           case when p_lease_type is not null and 'lease/' || p_lease_type <> all (g.muted)
                     and ('lease' <> all (g.notified) or ff__ring('lease')) then p_lease_type end,
           p_lease_reason, p_reason, p_lane_id, p_namespace, p_worker_id, p_worker_instance_id, p_tags, p_details, p_wait,
           p_size, p_batch
      from ff_event_generation g
     where p_family || '/' || p_event_type <> all (g.muted)
       and (p_family <> all (g.notified) or p_event_type = 'renewed' or ff__ring(p_family))
    returning event_id into v_event_id;
    if v_event_id is null and p_lease_type is not null then
        -- The completion is muted: the end of the lease stands alone.
        perform ff__emit_event('lease', p_lease_type, p_lease_reason, p_now_ms, p_ord, p_execution_id, p_attempt_index,
                               p_flow_id, p_lane_id, p_namespace, p_tags, p_lease_id, p_lease_epoch, p_worker_id,
                               p_worker_instance_id, p_size => p_size, p_batch => p_batch);
    end if;
    return v_event_id;
end
$$;
