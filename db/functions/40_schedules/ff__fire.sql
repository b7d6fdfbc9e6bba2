-- Creates the execution of a schedule for a moment: with a tick's own id (p_id), or a new one. A tick that has or
-- had its execution gets no other. Errors: as ff_create_execution.
create or replace function ff__fire(
    s ff_schedule,
    p_fire_at_ms bigint,
    p_id uuid,
    p_idempotency_key text,
    out outcome text,
    out execution_id text
)
language plpgsql volatile
as $$
begin
    execution_id := ff__wire_id(ff__partition(p_id), p_id);
    if p_id is not null and (exists (select from ff_execution c where c.execution_id = p_id) or ff__id_kept(p_id)) then
        outcome := 'duplicate';
        return;
    end if;
    select x.outcome, x.execution_id into outcome, execution_id
      from @extschema@.ff_create_execution(
               p_lane_id => s.lane_id, p_execution_kind => s.execution_kind, p_payload => s.payload,
               p_idempotency_key => p_idempotency_key, p_priority => s.priority, p_policy => s.policy,
               p_tags => s.tags || jsonb_build_object('schedule.id', s.schedule_id,
                                                      'schedule.fire_at_ms', p_fire_at_ms::text),
               p_required_capabilities => s.required_capabilities, p_namespace => s.namespace,
               p_execution_id => ff__fire.execution_id, p_payload_encoding => s.payload_encoding,
               p_creator => s.creator) x;
end
$$;
