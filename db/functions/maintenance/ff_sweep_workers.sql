-- Locks: registrations, without waiting. Safe to run concurrently.
create or replace function ff_sweep_workers(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        select jsonb_build_array(w.namespace, w.worker_instance_id)::text from ff_worker_registry w
         where w.last_heartbeat_ms + w.liveness_ttl_ms <= v_now
         order by w.last_heartbeat_ms + w.liveness_ttl_ms;
    select s.* into processed, errors, more from ff__sweep('sweep_workers', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_workers(int) is
$$Removes the registrations of workers without a heartbeat for their liveness_ttl_ms. Their leases are left to expire.
Oldest heartbeat first, at most p_limit.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
