-- Removes a worker that has not been heard of for its liveness_ttl_ms; its leases are left to run out. p_key: a json array
-- of namespace and instance. Returns as ff__sweep_row.
create or replace function ff__sweep_worker(p_key text) returns text
language plpgsql volatile
as $$
declare
    v_namespace text := p_key::jsonb ->> 0;
    v_instance text := p_key::jsonb ->> 1;
    v_now bigint;
    w ff_worker_registry;
begin
    select x.* into w from ff_worker_registry x
     where x.namespace = v_namespace and x.worker_instance_id = v_instance for update skip locked;
    v_now := ff__now_ms();
    if not found then
        return case when exists (select from ff_worker_registry x where x.namespace = v_namespace
                                                                    and x.worker_instance_id = v_instance)
                    then 'busy' else 'idle' end;
    elsif w.last_heartbeat_ms + w.liveness_ttl_ms > v_now then
        return 'idle';
    end if;
    delete from ff_worker_registry x where x.namespace = v_namespace and x.worker_instance_id = v_instance;
    perform ff__emit_worker('ttl_swept', v_namespace, w.worker_id, v_instance, v_now,
                            greatest(pg_current_xact_id()::text::bigint, w.last_event_ord));
    return 'done';
end
$$;
