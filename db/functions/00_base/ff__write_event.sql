-- The one writer of ff_event: muting, generation, doorbell. p_event carries what the event says; gen and event_id are
-- filled in here. Returns the event_id, also for a muted event (flow dispatch is keyed by it).
-- A family with notify = 'commit' rings channel ff_event_<family>; Postgres folds repeats in one transaction.
create or replace function ff__write_event(p_event ff_event) returns bigint
language plpgsql volatile
as $$
declare
    v_id bigint := nextval('ff_event_id_seq');
    v_muted text[];
    v_notify text;
    v_gen int;
begin
    select f.muted, f.notify, g.gen into v_muted, v_notify, v_gen
      from ff_event_family f, ff_event_generation g where f.family = p_event.family;
    if v_muted <> '{}' and (p_event.event_type = any (v_muted) or '*' = any (v_muted)) then
        return v_id;
    end if;
    insert into ff_event (
        ord, event_id, occurred_at_ms, execution_id, flow_id, lease_id, suspension_id, waitpoint_id, signal_id,
        lease_epoch, gen, attempt_index, partition_key, family, event_type, lane_id, namespace, tags, worker_id,
        worker_instance_id, source_type, source_identity, outcome, effect, reason, details)
    values (
        p_event.ord, v_id, p_event.occurred_at_ms, p_event.execution_id, p_event.flow_id, p_event.lease_id,
        p_event.suspension_id, p_event.waitpoint_id, p_event.signal_id, p_event.lease_epoch, v_gen,
        p_event.attempt_index, p_event.partition_key, p_event.family, p_event.event_type, p_event.lane_id,
        p_event.namespace, p_event.tags, p_event.worker_id, p_event.worker_instance_id, p_event.source_type,
        p_event.source_identity, p_event.outcome, p_event.effect, p_event.reason, p_event.details);
    if v_notify = 'commit' and (select s.value from ff_setting s where s.name = 'notify') = 'on' then
        perform pg_notify('ff_event_' || p_event.family, '');
    end if;
    return v_id;
end
$$;
