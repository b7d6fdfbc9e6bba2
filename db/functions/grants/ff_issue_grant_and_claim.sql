-- Locks: the execution. Not replayable.
create or replace function ff_issue_grant_and_claim(
    p_execution_id text,
    p_worker_id text default 'operator',
    p_worker_instance_id text default 'operator',
    p_lease_ttl_ms bigint default 30000
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
language plpgsql volatile security definer rows 1
as $$
declare
    e ff_exec;
begin
    perform ff__check_claimant(p_worker_id, p_worker_instance_id, 'p_lease_ttl_ms', p_lease_ttl_ms);
    e := ff__lock_execution(p_execution_id);
    if e.ownership_state = 'leased' and e.lease_expires_at_ms > e.now_ms then
        perform ff__raise('lease_conflict', format('worker %s holds a lease on this execution', e.worker_id),
                          jsonb_build_object('execution_id', p_execution_id, 'worker_id', e.worker_id,
                                             'lease_expires_at_ms', e.lease_expires_at_ms));
    elsif e.lifecycle_phase <> 'runnable' then
        perform ff__raise_not_leaseable(e);
    end if;
    perform ff__check_eligible(e);
    perform ff__find_own_grant(e, p_worker_id, p_worker_instance_id);
    return query
        select x.* from ff__lease(array[e.execution_id], p_worker_id, p_worker_instance_id, p_lease_ttl_ms, e.now_ms) x;
    if e.limited then
        update ff_execution c set unadmitted_lease_id = c.lease_id where c.execution_id = e.execution_id;
    end if;
end
$$;

comment on function ff_issue_grant_and_claim(text, text, text, bigint) is
$$Claims one execution by its id. Capabilities, lane state and admission are not checked; the execution must be ready,
or its delay must have ended.

Rows: exactly one
Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: flow_id, payload, payload_encoding, attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_execution_id, execution_not_found, lease_conflict, execution_not_leaseable
Errors: execution_not_eligible, grant_already_exists$$;
-- grant: ff_worker, ff_admin
