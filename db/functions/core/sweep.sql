-- Runs a maintenance step. p_scan yields the keys of due rows, oldest first and without a limit, so that locked or
-- backed-off rows do not hide the rows after them. A batch is one subtransaction; if it fails, each of its rows is
-- retried in its own. A row that fails alone is recorded (ff__record_sweep_error) and excluded; retries of recorded
-- rows run before the scan, at most p_limit / 4 at a time. p_retry false: the scan covers only a part of the step.
-- p_keep_ms: see ff__trim_rows.
create or replace function ff__sweep(
    p_name text, p_limit int, p_scan refcursor, p_retry boolean default true, p_keep_ms bigint[] default null,
    out processed int, out errors int, out more boolean
)
language plpgsql volatile
as $$
declare
    v_failed jsonb := (select jsonb_object_agg(x.row_key, x.next_retry_at_ms) from ff_reconciler_error x
                        where x.name = p_name and x.row_key <> '');
    v_now bigint := ff__now_ms();
    v_keys text[] := '{}'::text[];
    v_alone boolean := true;
    v_limit int;
    v_key text;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    if v_failed is not null and p_retry and p_limit > 0 then
        v_keys := array(select x.key from jsonb_each_text(v_failed) x where x.value::bigint <= v_now
                         order by x.value::bigint limit greatest(1, p_limit / 4));
    end if;
    more := cardinality(v_keys) = greatest(1, p_limit / 4);
    loop
        if not v_alone then
            begin
                processed := processed + ff__sweep_rows(p_name, v_keys, v_now, p_keep_ms);
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                v_alone := true;
            end;
        end if;
        if v_alone then
            foreach v_key in array v_keys loop
                begin
                    processed := processed + ff__sweep_rows(p_name, array[v_key], v_now, p_keep_ms);
                    if v_failed ? v_key then
                        perform ff__delete_sweep_errors(p_name, array[v_key]);
                    end if;
                exception when others then
                    if ff__stops_sweep(sqlstate) then
                        raise;
                    end if;
                    errors := errors + 1;
                    perform ff__record_sweep_error(p_name, v_key, sqlstate, sqlerrm);
                end;
            end loop;
        end if;
        -- Failed retries do not reduce the limit for due rows.
        v_limit := coalesce(v_limit, p_limit + errors);
        v_alone := false;
        v_keys := '{}';
        while cardinality(v_keys) < v_limit - processed - errors loop
            fetch p_scan into v_key;
            exit when not found;
            if (v_failed ? v_key) is not true then
                v_keys := v_keys || v_key;
            end if;
        end loop;
        exit when v_keys = '{}';
    end loop;
    close p_scan;
    more := processed + errors > 0 and (more or processed + errors >= v_limit);
end
$$;

-- Applies a step to these rows, all in one subtransaction of the caller. Returns the number processed.
create or replace function ff__sweep_rows(p_name text, p_keys text[], p_now_ms bigint, p_keep_ms bigint[]) returns int
language plpgsql volatile
as $$
declare
    v_key text;
    v_done int := 0;
begin
    if p_name = 'trim_retention' then
        return ff__trim_rows(p_keys, p_now_ms, p_keep_ms);
    end if;
    foreach v_key in array p_keys loop
        v_done := v_done + case
            when p_name = 'sweep_expired' then ff__sweep_expired_row(v_key, p_now_ms)
            when p_name = 'drain_sibling_cancels' then ff__drain_sibling(v_key)
            when p_name in ('sweep_budget_resets', 'sweep_budget_breaches', 'sweep_terminal_spend')
                then ff__sweep_budget(p_name, v_key)
            else ff__sweep_row(p_name, v_key) end::int;
    end loop;
    return v_done;
end
$$;

-- Deletes one row for ff_sweep_expired; returns whether it existed, was expired and not locked. p_key: the letter of
-- its table and a json array of its primary key. A reservation is deleted under the lock of its execution, as
-- everywhere.
create or replace function ff__sweep_expired_row(p_key text, p_now_ms bigint) returns boolean
language plpgsql volatile
as $$
declare
    k jsonb := substr(p_key, 2)::jsonb;
begin
    case left(p_key, 1)
        when 'i' then
            delete from ff_idempotency i
             where i.ctid = (select x.ctid from ff_idempotency x
                              where x.namespace = k ->> 0 and x.idempotency_key = k ->> 1
                                and x.expires_at_ms <= p_now_ms for update skip locked);
        when 'd' then
            delete from ff_budget_usage_dedup d
             where d.ctid = (select x.ctid from ff_budget_usage_dedup x
                              where x.budget_id = k ->> 0 and x.dedup_key = k ->> 1
                                and x.expires_at_ms <= p_now_ms for update skip locked);
        when 'r' then
            perform from ff_execution c where c.execution_id = (k ->> 1)::uuid for update skip locked;
            if not found and exists (select from ff_execution c where c.execution_id = (k ->> 1)::uuid) then
                return false;
            end if;
            delete from ff_quota_reservation q
             where q.ctid = (select x.ctid from ff_quota_reservation x
                              where x.quota_policy_id = k ->> 0 and x.execution_id = (k ->> 1)::uuid
                                and x.expires_at_ms <= p_now_ms for update skip locked);
        when 'w' then
            delete from ff_quota_window w
             where w.ctid = (select x.ctid from ff_quota_window x join ff_quota_policy p using (quota_policy_id)
                              where x.quota_policy_id = k ->> 0 and x.execution_id = (k ->> 1)::uuid
                                and x.attempt_index = (k ->> 2)::int
                                and x.admitted_at_ms <= p_now_ms - p.window_seconds * 1000 for update of x skip locked);
        when 'e' then
            -- Error rows are written by one transaction at a time.
            delete from ff_reconciler_error e
             where e.name = k ->> 0 and e.row_key = k ->> 1 and e.next_retry_at_ms <= p_now_ms - 3600000
               and ff__try_lock_step(e.name);
    end case;
    return found;
end
$$;

-- Processes one row for ff_drain_sibling_cancels; true if it was processed, as ff__sweep_row. p_key: target and
-- downstream of a row of the outbox, or child and the id of a row of ff_child_work. Locks the flow and the execution,
-- without waiting.
create or replace function ff__drain_sibling(p_key text) returns boolean
language plpgsql volatile
as $$
declare
    o ff_cancel_dispatch_outbox;
    w ff_child_work;
    e ff_exec;
begin
    if p_key like 'child %' then
        select x.* into w from ff_child_work x
         where x.work_id = split_part(p_key, ' ', 2)::bigint for update skip locked;
        return found and ff__run_child_work(w, false) = 'done';
    end if;
    select x.* into o from ff_cancel_dispatch_outbox x
     where x.target_eid = split_part(p_key, ' ', 1)::uuid and x.downstream_eid = split_part(p_key, ' ', 2)::uuid;
    if not found then
        return false;
    elsif not ff__try_flow(o.flow_id) then
        if exists (select from ff_flow_core f where f.flow_id = o.flow_id) then
            return false;
        end if;
        delete from ff_cancel_dispatch_outbox x where x.flow_id = o.flow_id and x.target_eid = o.target_eid;
        return true;
    end if;
    e := ff__try_open(o.target_eid, true);
    if e.execution_id is null and exists (select from ff_execution c where c.execution_id = o.target_eid) then
        perform ff__close_flow(o.flow_id);
        return false;
    end if;
    -- Gone, ended, or needed again by a pending group: delete only the row.
    if e.lifecycle_phase <> 'terminal' and not ff__feeds_open_group(o.flow_id, o.target_eid) then
        perform ff__cancel(e, 'override', o.reason, 'engine');
    end if;
    delete from ff_cancel_dispatch_outbox x
     where x.target_eid = o.target_eid and x.downstream_eid = o.downstream_eid;
    perform ff__close_flow(o.flow_id);
    return true;
end
$$;

-- Applies a budget step to one row; true if it was processed, as ff__sweep_row. p_key: a json array of the budget and,
-- except for a reset, the execution; a breach without an execution is deleted if no execution is left for it to end.
-- Locks, without waiting: to reset, the budget and its breach; to cancel, the breach and the execution, so that a reset
-- comes after that; to release spend, the execution and the budget.
create or replace function ff__sweep_budget(p_name text, p_key text) returns boolean
language plpgsql volatile
as $$
declare
    v_budget text := p_key::jsonb ->> 0;
    v_id uuid := (p_key::jsonb ->> 1)::uuid;
    v_now bigint;
    v_action text;
    b ff_budget;
    e ff_exec;
begin
    if p_name = 'sweep_terminal_spend' then
        perform from ff_execution c where c.execution_id = v_id for update skip locked;
        if not found then
            return false;
        elsif v_budget is null then
            perform ff__clear_unreturned_spend(v_id);
            return false;
        end if;
    else
        select x.action into v_action from ff_budget_breach x where x.budget_id = v_budget for update skip locked;
        if not found and exists (select from ff_budget_breach x where x.budget_id = v_budget) then
            return false;
        end if;
    end if;
    if p_name <> 'sweep_budget_breaches' then
        select x.* into b from ff_budget x where x.budget_id = v_budget for update skip locked;
        if not found then
            return false;
        end if;
    end if;
    v_now := ff__now_ms();
    case p_name
        when 'sweep_budget_resets' then
            if (b.next_reset_at_ms <= v_now) is not true then
                return false;
            end if;
            perform ff__reset_budget(
                b, ff__time_after(b.next_reset_at_ms,
                                  b.reset_interval_ms * ((v_now - b.next_reset_at_ms) / b.reset_interval_ms + 1)),
                v_now);
        when 'sweep_terminal_spend' then
            if not exists (select from ff_budget_usage_by_exec l
                            where l.budget_id = v_budget and l.execution_id = v_id)
               or not exists (select from ff_execution c
                               where c.execution_id = v_id and c.terminal_at_ms is not null) then
                return false;
            end if;
            perform ff__release_spend(b, v_id);
            perform ff__clear_unreturned_spend(v_id);
        when 'sweep_budget_breaches' then
            if v_action is null then
                return false;
            elsif v_id is null then
                -- Kept for executions that are locked or failed, not for those that run under cancel_pending.
                delete from ff_budget_breach x
                 where x.budget_id = v_budget
                   and not exists (select from ff_execution c
                                    where c.budget_ids @> array[v_budget] and c.terminal_at_ms is null
                                      and ff__is_cancel_covered(v_action, c.state, c.lease_expires_at_ms, v_now));
                return false;
            end if;
            e := ff__try_open(v_id);
            if e.execution_id is null or e.lifecycle_phase = 'terminal'
                  or not ff__is_cancel_covered(v_action, e.state, e.lease_expires_at_ms, e.now_ms)
                  or not exists (select from ff_execution c
                                  where c.execution_id = v_id and v_budget = any (c.budget_ids)) then
                return false;
            end if;
            perform ff__cancel(e, 'override', 'budget_exceeded', 'engine');
    end case;
    return true;
end
$$;

-- Clears the spends flag of a locked execution that has no spend left to release, so that ff_sweep_terminal_spend skips
-- it. No effect if it still has some.
create or replace function ff__clear_unreturned_spend(p_execution_id uuid) returns void
language plpgsql volatile
as $$
begin
    if not ff__has_unreturned_spend(p_execution_id) then
        update ff_execution c set spends = false where c.execution_id = p_execution_id and c.spends;
    end if;
end
$$;

-- Applies a step to one row, re-checked under its lock: true if it was processed, false if it is locked, gone or no
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
            perform ff__settle(e);
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
            return ff__unpark(e);
        when 'sweep_claim_grants' then
            if not exists (select from ff_claim_grant g
                            where g.execution_id = e.execution_id and g.expires_at_ms <= e.now_ms) then
                return false;
            end if;
            delete from ff_quota_reservation q
             where (q.quota_policy_id, q.execution_id) in (
                   select x.quota_policy_id, x.execution_id from ff_quota_reservation x
                    where x.execution_id = e.execution_id and x.expires_at_ms <= e.now_ms for update skip locked);
            perform ff__delete_grant(e.execution_id);
            update ff_execution c set last_mutation_at_ms = e.now_ms where c.execution_id = e.execution_id;
            perform ff__notify_lane(e.lane_id);
    end case;
    return true;
end
$$;

-- Ends an expired pending waitpoint of a locked execution; returns whether it was pending and expired.
create or replace function ff__expire_waitpoint(e ff_exec, p_waitpoint_id uuid) returns boolean
language plpgsql volatile
as $$
begin
    if not exists (select from ff_waitpoint w
                    where w.waitpoint_id = p_waitpoint_id and w.execution_id = e.execution_id
                      and w.state = 'pending' and w.expires_at_ms <= e.now_ms) then
        return false;
    end if;
    perform ff__end_pending(e, p_waitpoint_id, 'expired', 'never_committed');
    return true;
end
$$;
