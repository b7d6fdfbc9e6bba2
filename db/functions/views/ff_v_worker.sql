-- Workers, for dashboards and ad hoc queries. ff_now_ms is granted to every role of the engine.
create or replace view ff_v_worker as
select w.worker_instance_id,
       w.worker_id,
       w.namespace,
       w.lanes,
       w.capabilities,
       w.last_heartbeat_ms + w.liveness_ttl_ms > @extschema@.ff_now_ms() as alive,
       to_timestamp(w.last_heartbeat_ms / 1000::float8) as last_heartbeat_at,
       to_timestamp((w.last_heartbeat_ms + w.liveness_ttl_ms) / 1000::float8) as expires_at,
       to_timestamp(w.registered_at_ms / 1000::float8) as registered_at
  from ff_worker_registry w;

comment on view ff_v_worker is
$$Registered workers, and whether they are alive. Workers need not register, and leases do not depend on it.
Fast: namespace = .. and worker_instance_id = ..$$;
comment on column ff_v_worker.worker_instance_id is 'The process.';
comment on column ff_v_worker.worker_id is 'The worker it belongs to.';
comment on column ff_v_worker.namespace is 'The namespace it registered in.';
comment on column ff_v_worker.lanes is 'The lanes it registered for.';
comment on column ff_v_worker.capabilities is 'The capabilities it registered.';
comment on column ff_v_worker.alive is 'Whether its last heartbeat is recent enough.';
comment on column ff_v_worker.last_heartbeat_at is 'When it last sent a heartbeat.';
comment on column ff_v_worker.expires_at is 'When it counts as dead without another heartbeat.';
comment on column ff_v_worker.registered_at is 'When it registered.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
