-- What a step does with one row, re-checked under its lock: true if it was processed, false if it is locked, gone or no
-- longer due. Locks the execution, worker, flow or frame, without waiting.
create or replace function ff__sweep_row(p_name text, p_key text) returns boolean
language plpgsql volatile
as $$
declare
    v_id uuid;
    e ff_exec;
    s ff_suspension;
    w ff_worker_registry;
begin
    case p_name
        when 'project_flows' then
            perform from ff_flow_core f where f.flow_id = p_key::uuid for update skip locked;
            if found then
                perform @extschema@.ff_project_flow_summary(p_key::uuid);
            end if;
            return found;
        when 'trim_streams' then
            delete from ff_stream_frame f
             where f.ctid = (select x.ctid from ff_stream_frame x
                              where x.execution_id = (p_key::jsonb ->> 0)::uuid
                                and x.attempt_index = (p_key::jsonb ->> 1)::int
                                and x.ts_ms = (p_key::jsonb ->> 2)::bigint and x.seq = (p_key::jsonb ->> 3)::bigint
                                and x.expires_at_ms <= ff__now_ms() for update skip locked);
            return found;
        when 'sweep_workers' then
            delete from ff_worker_registry r
             where r.ctid = (select x.ctid from ff_worker_registry x
                              where x.namespace = p_key::jsonb ->> 0 and x.worker_instance_id = p_key::jsonb ->> 1
                                and x.last_heartbeat_ms + x.liveness_ttl_ms <= ff__now_ms() for update skip locked)
            returning r.* into w;
            if found then
                perform ff__emit_worker('ttl_swept', w.namespace, w.worker_id, w.worker_instance_id, ff__now_ms(),
                                        greatest(pg_current_xact_id()::text::bigint, w.last_event_ord));
            end if;
            return w.worker_id is not null;
        when 'sweep_waitpoints' then
            v_id := (select x.execution_id from ff_waitpoint x where x.waitpoint_id = p_key::uuid);
        else
            v_id := p_key::uuid;
    end case;

    e := ff__try_open(v_id);
    if e.execution_id is null then
        return false;
    end if;
    case p_name
        when 'sweep_expired_leases' then
            if e.ownership_state <> 'leased' then
                return false;
            elsif e.lease_expires_at_ms > e.now_ms then
                -- Renewed: the scan finds it again at the new expiry.
                update ff_execution c set due_at_ms = c.lease_expires_at_ms
                 where c.execution_id = e.execution_id;
                return false;
            end if;
            perform ff__mark_expired(e);
        when 'sweep_attempt_timeouts' then
            if (e.lifecycle_phase = 'active' and e.attempt_timeout_at_ms <= e.now_ms) is not true then
                return false;
            end if;
            perform ff__expire_attempt(e);
        when 'sweep_deadlines' then
            if (e.lifecycle_phase <> 'terminal' and e.deadline_at_ms <= e.now_ms) is not true then
                return false;
            end if;
            perform ff__expire_deadline(e);
        when 'sweep_delayed' then
            if e.eligibility_state <> 'not_eligible_until_time' or e.delay_until_ms > e.now_ms then
                return false;
            end if;
            perform ff__requeue(e);
        when 'sweep_suspensions' then
            if e.lifecycle_phase <> 'suspended' then
                return false;
            end if;
            s := ff__open_suspension(e);
            if (s.timeout_at_ms <= e.now_ms) is not true then
                return false;
            end if;
            perform ff__expire_suspension(e, s);
        when 'sweep_waitpoints' then
            return ff__expire_waitpoint(e, p_key::uuid);
        when 'sweep_admissions' then
            return ff__let_go(e);
        when 'sweep_claim_grants' then
            if not exists (select from ff_claim_grant g where g.execution_id = e.execution_id and g.expires_at_ms <= e.now_ms)
            then
                return false;
            end if;
            delete from ff_quota_reservation q
             where (q.quota_policy_id, q.execution_id) in (
                   select x.quota_policy_id, x.execution_id from ff_quota_reservation x
                    where x.execution_id = e.execution_id and x.expires_at_ms <= e.now_ms for update skip locked);
            perform ff__ungrant(e.execution_id);
            update ff_execution c set last_mutation_at_ms = e.now_ms where c.execution_id = e.execution_id;
            perform ff__wake_lane(e.lane_id);
    end case;
    return true;
end
$$;
