-- Locks: the registration.
create or replace function ff_heartbeat_worker(
    p_worker_instance_id text, p_namespace text default 'default', out outcome text, out next_expiry_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    w ff_worker_registry;
    v_now bigint;
begin
    perform ff__check_text('p_worker_instance_id', p_worker_instance_id, 1, 256);
    perform ff__check_text('p_namespace', p_namespace, 1, 64);
    select x.* into w from ff_worker_registry x
     where x.namespace = p_namespace and x.worker_instance_id = p_worker_instance_id for update;
    v_now := ff__now_ms();
    if w.worker_id is null or w.last_heartbeat_ms + w.liveness_ttl_ms <= v_now then
        outcome := 'not_registered';
        return;
    end if;
    outcome := 'refreshed';
    next_expiry_ms := v_now + w.liveness_ttl_ms;
    update ff_worker_registry x set last_heartbeat_ms = v_now
     where x.namespace = p_namespace and x.worker_instance_id = p_worker_instance_id;
end
$$;

comment on function ff_heartbeat_worker(text, text) is
$$Extends a registration by its liveness TTL. A registration that has expired is not renewed: register again.

Outcomes: outcome = refreshed | not_registered
Nullable: next_expiry_ms
Errors: invalid_input$$;
-- grant: ff_worker, ff_admin
