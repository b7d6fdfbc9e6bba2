-- Raises invalid_claim_grant, without details of the existing grant.
create or replace function ff__raise_bad_grant(p_execution_id text default null) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_claim_grant', 'the grant does not allow this claim',
                      jsonb_strip_nulls(jsonb_build_object('execution_id', p_execution_id)));
end
$$;

-- Checks that a worker has the required capabilities of an execution. Errors: capability_mismatch (DETAIL.missing,
-- sorted).
create or replace function ff__check_capable(e ff_exec, p_capabilities text[]) returns void
language plpgsql stable
as $$
declare
    v_missing text[] := array(select t.token from ff_exec_input i, unnest(i.required_capabilities) t(token)
                               where i.execution_id = e.execution_id and t.token <> all (p_capabilities)
                               order by t.token collate "C");
begin
    if v_missing <> '{}' then
        perform ff__raise('capability_mismatch', format('the worker lacks %s', array_to_string(v_missing, ', ')),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'missing', to_jsonb(v_missing)));
    end if;
end
$$;

-- Checks an execution for a claim or grant by id: it must be ready or its delay must have ended, its deadline must not
-- have passed, and its flow must be claimable.
-- Errors: execution_not_eligible (DETAIL state).
create or replace function ff__check_eligible(e ff_exec) returns void
language plpgsql stable
as $$
begin
    if e.lifecycle_phase = 'runnable'
       and (e.eligibility_state = 'eligible_now'
            or (e.eligibility_state = 'not_eligible_until_time' and e.delay_until_ms <= e.now_ms))
       and (e.deadline_at_ms is null or e.deadline_at_ms > e.now_ms)
       and (e.flow_id is null or ff__flow_claimable(e.flow_id)) then
        return;
    end if;
    perform ff__raise('execution_not_eligible',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id),
                             case when e.deadline_at_ms <= e.now_ms then 'past its deadline'
                                  when not ff__flow_claimable(e.flow_id) then 'in a flow that hands out no work'
                                  else e.public_state end),
                      jsonb_build_object(
                          'execution_id', ff__wire_id(e.partition_key, e.execution_id), 'public_state', e.public_state,
                          'lifecycle_phase', e.lifecycle_phase, 'eligibility_state', e.eligibility_state,
                          'delay_until_ms', e.delay_until_ms, 'deadline_at_ms', e.deadline_at_ms,
                          'flow_claimable', ff__flow_claimable(e.flow_id)));
end
$$;

-- Checks that the lane of an execution is claimable. Errors: lane_not_claimable.
create or replace function ff__check_lane_claimable(e ff_exec) returns void
language plpgsql stable
as $$
begin
    if not ff__lane_claimable(e.lane_id) then
        perform ff__raise('lane_not_claimable', format('lane %s hands out no work', e.lane_id),
                          jsonb_build_object('lane_id', e.lane_id,
                                             'execution_id', ff__wire_id(e.partition_key, e.execution_id)));
    end if;
end
$$;

-- True if a lane is known and neither paused nor disabled. Errors: invalid_lane_id.
create or replace function ff__lane_claimable(p_lane_id text) returns boolean
language plpgsql stable
as $$
declare
    v_state text;
begin
    select l.state into v_state from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
        return false;
    end if;
    return v_state in ('active', 'draining');
end
$$;

-- Raises execution_not_leaseable with the phase of the execution.
create or replace function ff__raise_not_leaseable(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_leaseable',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id), e.public_state),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'lifecycle_phase', e.lifecycle_phase, 'public_state', e.public_state));
end
$$;

-- Returns the live grant on an execution if this worker holds it; a row of NULLs if there is none.
-- Errors: grant_already_exists (another worker holds a live grant; DETAIL has its expiry, not its id).
create or replace function ff__find_own_grant(e ff_exec, p_worker_id text, p_worker_instance_id text)
returns ff_claim_grant
language plpgsql stable
as $$
declare
    g ff_claim_grant;
begin
    select x.* into g from ff_claim_grant x where x.execution_id = e.execution_id and x.expires_at_ms > e.now_ms;
    if found and (g.worker_id, g.worker_instance_id) is distinct from (p_worker_id, p_worker_instance_id) then
        perform ff__raise('grant_already_exists', 'another worker holds a grant for this execution',
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'expires_at_ms', g.expires_at_ms));
    end if;
    return g;
end
$$;

-- Turns a grant of kind reclaim into a lease on a crashed execution. Columns as ff_reclaim_execution; claim is NULL
-- unless outcome is claimed.
create or replace function ff__reclaim(
    p_execution_id text,
    p_grant_id uuid,
    p_worker_id text,
    p_worker_instance_id text,
    p_lease_ttl_ms bigint,
    p_max_reclaim_count int
) returns ff_reclaim_row
language plpgsql volatile
as $$
declare
    v ff_reclaim_row;
    e ff_exec;
    g ff_claim_grant;
    r ff_claim_row;
begin
    perform ff__check_claimant(p_worker_id, p_worker_instance_id, 'p_lease_ttl_ms', p_lease_ttl_ms);
    if p_grant_id is null then
        perform ff__invalid('p_grant_id', 'must not be null');
    elsif p_max_reclaim_count < 0 then
        perform ff__invalid('p_max_reclaim_count', 'must be 0 or more');
    end if;
    e := ff__lock_execution(p_execution_id);
    v.reclaim_count := e.lease_reclaim_count;
    select x.* into g from ff_claim_grant x where x.execution_id = e.execution_id;
    if not found or g.grant_id <> p_grant_id or g.kind <> 'reclaim' or g.expires_at_ms <= e.now_ms then
        v.outcome := 'grant_not_found';
        return v;
    elsif g.worker_id <> p_worker_id then
        perform ff__raise_bad_grant(p_execution_id);
    end if;
    perform ff__check_lane_claimable(e);
    if not ff__reclaimable(e) or e.flow_id is not null and not ff__flow_claimable(e.flow_id) then
        if e.limited then
            perform ff__free_slot(e, false);
        end if;
        perform ff__delete_grant(e.execution_id);
        v.outcome := 'not_reclaimable';
    elsif ff__expire_if_due(e) then
        v.outcome := 'not_reclaimable';
    elsif e.lease_reclaim_count >= least(ff__max_reclaims(e.execution_id), p_max_reclaim_count) then
        perform ff__fail_exhausted_reclaims(e);
        v.outcome := 'reclaim_cap_exceeded';
    else
        if e.limited then
            e.now_ms := ff__require_admission(e, null);
        end if;
        v.reclaim_count := e.lease_reclaim_count + 1;
        select x.* into r
          from ff__lease(array[e.execution_id], p_worker_id, p_worker_instance_id, p_lease_ttl_ms, e.now_ms) x;
        v.claim := r;
        v.outcome := 'claimed';
    end if;
    return v;
end
$$;

-- Turns a grant of kind claim or resume into a lease. The instance may differ from the grant's, after a restart of the
-- worker process. p_grant_id can be NULL for kind resume only: no grant is needed unless another worker holds a live
-- one.
create or replace function ff__redeem_grant(
    p_execution_id text, p_grant_id uuid, p_worker_id text, p_worker_instance_id text, p_lease_ttl_ms bigint,
    p_kind text
) returns ff_claim_row
language plpgsql volatile
as $$
declare
    e ff_exec;
    g ff_claim_grant;
    r ff_claim_row;
begin
    perform ff__check_claimant(p_worker_id, p_worker_instance_id, 'p_lease_ttl_ms', p_lease_ttl_ms);
    if p_grant_id is null and p_kind <> 'resume' then
        perform ff__invalid('p_grant_id', 'must not be null');
    end if;
    e := ff__lock_execution(p_execution_id);
    if p_kind = 'resume' and e.attempt_state <> 'attempt_interrupted' then
        perform ff__raise('not_a_resumed_execution', 'the execution has no paused attempt',
                          jsonb_build_object('execution_id', p_execution_id));
    elsif e.lifecycle_phase <> 'runnable' then
        perform ff__raise_not_leaseable(e);
    elsif p_kind = 'claim' and e.attempt_state = 'attempt_interrupted' then
        perform ff__raise('use_claim_resumed_execution', 'the execution goes on with a paused attempt',
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    perform ff__check_eligible(e);
    perform ff__check_lane_claimable(e);
    select x.* into g from ff_claim_grant x where x.execution_id = e.execution_id;
    if p_grant_id is null then
        if g.worker_id <> p_worker_id then
            perform ff__find_own_grant(e, p_worker_id, p_worker_instance_id);
        end if;
    elsif not found or g.grant_id <> p_grant_id or g.kind <> p_kind or g.worker_id <> p_worker_id then
        perform ff__raise_bad_grant(p_execution_id);
    elsif g.expires_at_ms <= e.now_ms then
        perform ff__raise('claim_grant_expired', 'the grant has expired',
                          jsonb_build_object('execution_id', p_execution_id, 'expires_at_ms', g.expires_at_ms));
    end if;
    if e.limited then
        e.now_ms := ff__require_admission(e, null);
    end if;
    select x.* into r
      from ff__lease(array[e.execution_id], p_worker_id, p_worker_instance_id, p_lease_ttl_ms, e.now_ms) x;
    return r;
end
$$;

-- ff__admit_many for a claim or grant of one execution: raises an error if admission is denied, and parks nothing.
-- Returns the time after the last lock. Errors: budget_exceeded, rate_limit_exceeded, concurrency_limit_exceeded
-- (DETAIL retry_after_ms).
create or replace function ff__require_admission(e ff_exec, p_hold_ms bigint) returns bigint
language plpgsql volatile
as $$
declare
    v_id text := ff__wire_id(e.partition_key, e.execution_id);
    a ff_admission;
begin
    select x.* into a from ff__check_admissions(array[e.execution_id], p_hold_ms) x;
    if not found then
        return ff__now_ms();
    elsif a.outcome = 'budget_exceeded' then
        perform ff__raise('budget_exceeded', format('budget %s of execution %s is used up', a.budget_id, v_id),
                          jsonb_build_object('execution_id', v_id, 'budget_id', a.budget_id,
                                             'retry_after_ms', a.retry_after_ms));
    elsif a.outcome = 'rate_exceeded' then
        perform ff__raise('rate_limit_exceeded', format('quota policy %s allows no more starts now', a.quota_policy_id),
                          jsonb_build_object('execution_id', v_id, 'quota_policy_id', a.quota_policy_id,
                                             'retry_after_ms', a.retry_after_ms));
    end if;
    perform ff__raise('concurrency_limit_exceeded',
                      format(case a.outcome when 'busy' then 'quota policy %s is locked by another transaction'
                                            else 'quota policy %s has no free slot' end, a.quota_policy_id),
                      jsonb_build_object('execution_id', v_id, 'quota_policy_id', a.quota_policy_id,
                                         'retry_after_ms', a.retry_after_ms));
    return null;
end
$$;

-- True if members of a flow may be claimed: the flow is not being built, and not cancelled together with its members.
create or replace function ff__flow_claimable(p_flow_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return coalesce((select f.claimable from ff_flow_core f where f.flow_id = p_flow_id), true);
end
$$;
