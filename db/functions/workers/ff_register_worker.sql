-- Locks: the registration (waits for it). Repeatable: refreshed.
create or replace function ff_register_worker(
    p_worker_id text,
    p_worker_instance_id text,
    p_lanes text[],
    p_capabilities text[] default '{}',
    p_liveness_ttl_ms bigint default 30000,
    p_namespace text default 'default',
    out outcome text,
    out next_expiry_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_lanes text[];
    v_capabilities text[];
    v_lane text;
    v_now bigint;
    v_ord bigint := pg_current_xact_id()::text::bigint;
    v_live boolean;
    w ff_worker_registry;
begin
    perform ff__check_text('p_worker_id', p_worker_id, 1, 256);
    perform ff__check_text('p_worker_instance_id', p_worker_instance_id, 1, 256);
    perform ff__check_text('p_namespace', p_namespace, 1, 64);
    if p_lanes is null or cardinality(p_lanes) = 0 then
        perform ff__invalid('p_lanes', 'must name at least one lane');
    elsif cardinality(p_lanes) > 1000 then
        perform ff__invalid('p_lanes', 'must name at most 1000 lanes');
    end if;
    foreach v_lane in array p_lanes loop
        if v_lane is null then
            perform ff__invalid('p_lanes', 'must not contain null');
        end if;
        perform ff__check_lane_id(v_lane);
    end loop;
    v_lanes := array(select distinct x.lane collate "C" from unnest(p_lanes) x(lane) order by 1);
    v_capabilities := ff__check_capabilities('p_capabilities', p_capabilities);
    perform ff__check_ttl('p_liveness_ttl_ms', p_liveness_ttl_ms);

    loop
        v_now := ff__now_ms();
        insert into ff_worker_registry (
            namespace, worker_instance_id, worker_id, lanes, capabilities, last_heartbeat_ms, liveness_ttl_ms,
            registered_at_ms, last_event_ord)
        values (
            p_namespace, p_worker_instance_id, p_worker_id, v_lanes, v_capabilities, v_now, p_liveness_ttl_ms, v_now,
            v_ord)
        on conflict do nothing;
        if found then
            outcome := 'registered';
            exit;
        end if;
        select x.* into w from ff_worker_registry x
         where x.namespace = p_namespace and x.worker_instance_id = p_worker_instance_id for update;
        -- Not found: deleted by another transaction after the insert found the conflict. Retry.
        continue when not found;
        v_now := ff__now_ms();
        v_live := w.last_heartbeat_ms + w.liveness_ttl_ms > v_now;
        if v_live and w.worker_id <> p_worker_id then
            perform ff__raise('worker_instance_conflict',
                              format('worker %s is registered under this instance id', w.worker_id),
                              jsonb_build_object('worker_instance_id', p_worker_instance_id, 'worker_id', w.worker_id));
        end if;
        outcome := case when v_live then 'refreshed' else 'registered' end;
        v_ord := greatest(v_ord, w.last_event_ord);
        update ff_worker_registry x set
            worker_id = p_worker_id, lanes = v_lanes, capabilities = v_capabilities, last_heartbeat_ms = v_now,
            liveness_ttl_ms = p_liveness_ttl_ms, last_event_ord = v_ord,
            registered_at_ms = case when v_live then x.registered_at_ms else v_now end
         where x.namespace = p_namespace and x.worker_instance_id = p_worker_instance_id;
        exit;
    end loop;
    next_expiry_ms := v_now + p_liveness_ttl_ms;
    if outcome = 'registered' then
        perform ff__emit_worker('registered', p_namespace, p_worker_id, p_worker_instance_id, v_now, v_ord);
    end if;
end
$$;

comment on function ff_register_worker(text, text, text[], text[], bigint, text) is
$$Registers a worker with its lanes and capabilities, for monitoring only: claims do not require it. The registration
expires at next_expiry_ms unless heartbeats extend it.

Outcomes: outcome = registered | refreshed
Errors: invalid_input, invalid_lane_id, invalid_capabilities, worker_instance_conflict$$;
-- grant: ff_worker, ff_admin
