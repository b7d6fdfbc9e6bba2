-- Locks: the rows it picks, due rows of the lane, the quota policies of the rows, all with skip locked: it never waits.
-- Not replayable.
create or replace function ff_claim_many(
    p_lane_id text,
    p_worker_id text,
    p_worker_instance_id text,
    p_limit int default 10,
    p_capabilities text[] default '{}',
    p_lease_ttl_ms bigint default 30000,
    p_namespace text default null
) returns table (
    handle text,
    handle_kind text,
    execution_id text,
    namespace text,
    lane_id text,
    flow_id uuid,
    execution_kind text,
    payload bytea,
    payload_encoding text,
    tags jsonb,
    priority int,
    attempt_index int,
    attempt_id uuid,
    attempt_type text,
    lease_id uuid,
    lease_epoch bigint,
    lease_expires_at_ms bigint,
    attempt_timeout_at_ms bigint,
    deadline_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_capabilities text[];
    v_ids uuid[];
    v_types text[];
    v_id uuid;
    v_left int := p_limit;
    v_heals int := 0;
    v_healed boolean;
    v_plain boolean;
    v_limited boolean;
    v_new boolean;
    v_fit uuid[] := '{}'::uuid[];
    v_denied boolean;
    v_entered boolean := false;
    v_unblocked boolean := false;
    v_policies text[] := '{}'::text[];
    v_rated text[] := '{}'::text[];
    v_busy text[] := '{}'::text[];
    v_budgets text[] := '{}'::text[];
    v_ready uuid[];
    v_admission record;
    v_snapshot text;
    v_seen uuid[];
    e ff_exec;
begin
    perform ff__check_limit(p_limit);
    v_capabilities := ff__check_claim(p_worker_id, p_worker_instance_id, p_capabilities, 'p_lease_ttl_ms', p_lease_ttl_ms,
                                      p_namespace);
    if p_limit = 0 then
        perform ff__lane_claimable(p_lane_id);
        return;
    end if;
    v_limited := coalesce((select l.limited from ff_lane_registry l where l.lane_id = p_lane_id), false);
    loop
        v_snapshot := pg_current_snapshot()::text;
        if v_limited then
            begin
                v_ids := ff__pick_many(p_lane_id, v_capabilities, p_namespace, v_left, not v_entered, v_heals < 64,
                                       v_policies, v_rated, v_busy, v_budgets);
                v_fit := array(
                    select u.id
                      from unnest(v_ids) with ordinality u(id, n) join ff_exec_core c on c.execution_id = any (array[u.id])
                     where (c.flow_id is null or ff__flow_claimable(c.flow_id))
                       and case when c.lifecycle_phase = 'runnable' and c.deadline_at_ms is null then true
                                else not ff__heal(ff__open(u.id), false) end
                     order by u.n);
                v_admission := ff__admit_many(v_fit, v_policies, v_rated, v_busy, v_budgets);
                if v_admission.p_busy <> v_busy then
                    perform ff__raise('concurrency_limit_exceeded', 'undoes the block and with it the locks');
                end if;
            exception when sqlstate 'WF210' then
                v_busy := v_admission.p_busy;
                continue;
            end;
            v_policies := v_admission.p_policies;
            v_rated := v_admission.p_rated;
            v_budgets := v_admission.p_budgets;
        else
            v_ids := ff__pick_many(p_lane_id, v_capabilities, p_namespace, v_left, not v_entered, v_heals < 64,
                                   v_policies, v_rated, v_busy, v_budgets);
        end if;
        v_entered := true;
        if v_ids = '{}' then
            v_seen := ff__missed(p_lane_id, v_capabilities, p_namespace, v_snapshot, v_seen, v_policies, v_rated, v_busy,
                                 v_budgets);
            continue when v_seen is not null;
            exit when v_unblocked or v_left < p_limit or not ff__unblock(p_lane_id);
            v_unblocked := true;
            continue;
        end if;
        -- Plain: an attempt starts, nothing is overdue, no grant is left over, no flow was stopped since. The rest goes
        -- one by one.
        select bool_and(c.lifecycle_phase = 'runnable' and c.attempt_state <> 'attempt_interrupted'
                        and c.deadline_at_ms is null and c.reserved_until_ms is null
                        and (c.flow_id is null or u.id = any (v_fit) or ff__flow_claimable(c.flow_id))),
               array_agg(case c.attempt_state when 'pending_first_attempt' then 'initial'
                                              when 'pending_retry_attempt' then 'retry' else 'replay' end order by u.n),
               bool_or(c.limited)
          into v_plain, v_types, v_new
          from unnest(v_ids) with ordinality u(id, n) join ff_exec_core c on c.execution_id = any (array[u.id]);
        if v_new and not v_limited then
            v_limited := true; -- the lane was not limited when this call began
            continue;
        end if;
        v_healed := false;
        if not v_plain then
            v_ready := '{}';
            foreach v_id in array v_ids loop
                if v_id = any (v_fit) then
                    v_ready := v_ready || v_id;
                    continue;
                end if;
                e := ff__open(v_id);
                if ff__heal(e, v_heals < 64) then
                    v_healed := true;
                    v_heals := v_heals + 1;
                elsif e.flow_id is null or ff__flow_claimable(e.flow_id) then
                    v_ready := v_ready || v_id;
                end if;
            end loop;
            v_ids := v_ready;
        end if;
        v_denied := false;
        if v_limited then
            v_denied := cardinality(v_admission.p_admitted) < cardinality(v_fit);
            v_types := array(select t.type from unnest(v_ids, v_types) with ordinality t(id, type, n)
                              where t.id = any (v_admission.p_admitted) order by t.n);
            v_ids := v_admission.p_admitted;
        end if;
        if v_plain then
            return query
                select m.* from ff__lease_many(v_ids, v_types, p_worker_id, p_worker_instance_id, p_lease_ttl_ms) m;
            v_left := v_left - cardinality(v_ids);
        else
            foreach v_id in array v_ids loop
                e := ff__lease(ff__open(v_id), p_worker_id, p_worker_instance_id, p_lease_ttl_ms);
                return query select x.* from ff__claimed(e) x;
                v_left := v_left - 1;
            end loop;
        end if;
        exit when v_left = 0;
        if not (v_healed or v_denied) then
            v_seen := ff__missed(p_lane_id, v_capabilities, p_namespace, v_snapshot, v_seen, v_policies, v_rated, v_busy,
                                 v_budgets);
            exit when v_seen is null;
        end if;
    end loop;
    if v_left = p_limit then
        perform ff__arm_lane(p_lane_id);
    end if;
end
$$;

comment on function ff_claim_many(text, text, text, int, text[], bigint, text) is
$$ff_claim for up to p_limit executions (at most 1000) in one call, in the order in which ff_claim would have handed them
out.

Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: flow_id, payload, payload_encoding, attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_lane_id, invalid_capabilities$$;
