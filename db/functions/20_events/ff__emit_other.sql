-- The one statement that writes events of no execution: of a flow, a lane, a worker, an operator. p_gen is what
-- ff__event_gate returned for it: NULL, nothing is written.
create or replace function ff__emit_other(
    p_gen int, p_family text, p_event_type text, p_now_ms bigint, p_ord bigint, p_reason text default null,
    p_details jsonb default null, p_namespace text default null, p_tags jsonb default null, p_flow_id uuid default null,
    p_lane_id text default null, p_worker_id text default null, p_worker_instance_id text default null
) returns void
language plpgsql volatile
as $$
begin
    if p_gen is not null then
        insert into ff_event_log (
            family, gen, ord, event_id, occurred_at_ms, event_type, reason, details, namespace, tags, flow_id, lane_id,
            worker_id, worker_instance_id)
        values (
            p_family, p_gen, p_ord, nextval('ff_event_id_seq'), p_now_ms, p_event_type, p_reason, p_details, p_namespace,
            p_tags, p_flow_id, p_lane_id, p_worker_id, p_worker_instance_id);
    end if;
end
$$;
