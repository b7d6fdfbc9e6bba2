-- Whether a typed worker verb is an operator's override, which needs no fence.
-- An override requires the privileges of ff_operator, of ff_admin or of the owner of these functions; superusers have
-- them, and without these roles only the owner does. current_user is the owner here, so the caller is the current role
-- if SET ROLE was used, otherwise the login role, also when the call comes through a SECURITY DEFINER function.
-- Errors: invalid_input, override_not_allowed.
create or replace function ff__is_override(
    p_execution_id text, p_source text, p_lease_id uuid, p_lease_epoch bigint, p_attempt_id uuid
) returns boolean
language plpgsql stable
as $$
declare
    v_caller text;
begin
    if p_source is null or p_source not in ('lease_holder', 'operator_override') then
        perform ff__invalid('p_source', 'must be lease_holder or operator_override');
    elsif p_source = 'lease_holder' or num_nonnulls(p_lease_id, p_lease_epoch, p_attempt_id) > 0 then
        return false;
    end if;
    v_caller := coalesce(nullif(current_setting('role'), 'none'), session_user);
    if not exists (select from pg_roles c join pg_roles r on pg_has_role(c.oid, r.oid, 'usage')
                    where c.rolname = v_caller and r.rolname in ('ff_operator', 'ff_admin', current_user)) then
        perform ff__raise('override_not_allowed', format('role %s may not act in place of the lease holder', v_caller),
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    return true;
end
$$;

-- The only fence check (ff__fence_status): locks the execution and opens the operation, if this fence holds its live
-- lease. Returns a row of NULLs if this operation (p_op) has already released the lease with this fence: the caller
-- returns the recorded result.
-- Order: execution_not_found, replay, execution_not_active, stale_lease, lease_revoked, lease_expired.
create or replace function ff__fence(p_fence ff_fence, p_op text default null) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec := ff__open(p_fence.execution_id);
    v_none ff_exec;
    v_verdict text := ff__fence_status(e, p_fence, p_op);
begin
    if v_verdict is null then
        return e;
    elsif v_verdict = 'replay' then
        return v_none;
    elsif v_verdict = 'execution_not_found' then
        perform ff__raise_not_found(p_fence.wire_id);
    elsif v_verdict = 'execution_not_active' then
        perform ff__raise_not_active(e);
    elsif v_verdict = 'stale_lease' then
        perform ff__raise('stale_lease',
                          format('this is not the current lease on execution %s, which has epoch %s', p_fence.wire_id,
                                 e.lease_epoch),
                          jsonb_build_object('execution_id', p_fence.wire_id, 'lease_epoch', e.lease_epoch,
                                             'attempt_index', e.current_attempt_index));
    elsif v_verdict = 'lease_revoked' then
        perform ff__raise('lease_revoked', format('the lease on execution %s was revoked', p_fence.wire_id),
                          jsonb_build_object('execution_id', p_fence.wire_id,
                                             'reason', (select c.lease_revoke_reason from ff_exec_core c
                                                         where c.execution_id = e.execution_id)));
    end if;
    perform ff__raise('lease_expired', format('the lease on execution %s expired %s ms ago', p_fence.wire_id,
                                              e.now_ms - e.lease_expires_at_ms),
                      jsonb_build_object('execution_id', p_fence.wire_id, 'reason', ff__lease_end_reason(e),
                                         'lease_expires_at_ms', e.lease_expires_at_ms));
    return null;
end
$$;

-- The only definition of the fence: whether a handle matches the live lease of an execution. Plain SQL, so that it is
-- inlined.
create or replace function ff__fence_holds(c ff_execution, p_now_ms bigint, p_handle text) returns boolean
language sql stable parallel safe
as $$
    select (c).state = 'leased' and (c).lease_expires_at_ms > p_now_ms
       and ff__encode_handle((c).partition_key, (c).execution_id, (c).attempt_index, (c).lease_id, (c).lease_epoch,
                             (c).attempt_id) = p_handle
$$;

-- Builds the fence of a typed verb; an override needs none. Errors: invalid_execution_id, fence_required,
-- partial_fence.
create or replace function ff__fence_from_arguments(
    p_execution_id text,
    p_attempt_index int,
    p_lease_id uuid,
    p_lease_epoch bigint,
    p_attempt_id uuid,
    p_override boolean default false
) returns ff_fence
language plpgsql stable
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if num_nulls(p_lease_id, p_lease_epoch, p_attempt_id) = 3 and not p_override then
        perform ff__raise('fence_required', 'the call needs lease_id, lease_epoch and attempt_id',
                          jsonb_build_object('execution_id', p_execution_id));
    elsif num_nulls(p_lease_id, p_lease_epoch, p_attempt_id) in (1, 2) then
        perform ff__raise('partial_fence', 'lease_id, lease_epoch and attempt_id belong together',
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    return (v_id, p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch, p_attempt_id)::ff_fence;
end
$$;

-- Opens an operation in place of the lease holder: the execution must be active; the fence is not checked. Emits an
-- operator event. Errors: invalid_execution_id, execution_not_found, execution_not_active.
create or replace function ff__open_override(p_execution_id text, p_attempt_index int, p_op text) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec := ff__lock_execution(p_execution_id);
begin
    if e.lifecycle_phase <> 'active' then
        perform ff__raise_not_active(e);
    elsif p_attempt_index <> e.current_attempt_index then
        perform ff__raise('stale_lease', format('execution %s runs attempt %s, not %s', p_execution_id,
                                                e.current_attempt_index, p_attempt_index),
                          jsonb_build_object('execution_id', p_execution_id, 'lease_epoch', e.lease_epoch,
                                             'attempt_index', e.current_attempt_index));
    end if;
    return ff__emit(e, 'operator', 'overridden', null, jsonb_build_object('op', p_op));
end
$$;

-- The attempt whose lease with this fence was released by p_op, or a row of NULLs. The replay rule is based on it.
create or replace function ff__recorded_release(p_fence ff_fence, p_op text) returns ff_attempt
language plpgsql stable
as $$
declare
    a ff_attempt;
begin
    select t.* into a from ff_attempt t
     where t.execution_id = p_fence.execution_id
       and t.release_lease_id = p_fence.lease_id and t.release_lease_epoch = p_fence.lease_epoch
       and t.attempt_id = p_fence.attempt_id
       and t.release_op = p_op;
    return a;
end
$$;

-- The fence status of an opened execution: NULL if this fence holds its live lease, 'replay' if this operation (p_op)
-- released the lease, otherwise the kind of error, in the order of the contract.
create or replace function ff__fence_status(e ff_exec, p_fence ff_fence, p_op text) returns text
language plpgsql stable
as $$
begin
    if e.lifecycle_phase = 'active' and e.lease_id = p_fence.lease_id and e.lease_epoch = p_fence.lease_epoch
       and e.current_attempt_id = p_fence.attempt_id
       and (p_fence.attempt_index is null or e.current_attempt_index = p_fence.attempt_index)
    then
        return case when e.ownership_state = 'lease_revoked' then 'lease_revoked'
                    when e.ownership_state <> 'leased' or e.lease_expires_at_ms <= e.now_ms then 'lease_expired' end;
    elsif e.execution_id is null then
        return 'execution_not_found';
    elsif p_op is not null and (ff__recorded_release(p_fence, p_op)).attempt_index is not null then
        return 'replay';
    end if;
    return case e.lifecycle_phase when 'active' then 'stale_lease' else 'execution_not_active' end;
end
$$;

-- Raises execution_not_active with the execution's state.
create or replace function ff__raise_not_active(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_active',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id), e.public_state),
                      jsonb_build_object(
                          'execution_id', ff__wire_id(e.partition_key, e.execution_id),
                          'lifecycle_phase', e.lifecycle_phase, 'terminal_outcome',
                          case when e.lifecycle_phase <> 'terminal' then 'none'
                               when e.public_state = 'completed' then 'success' else e.public_state end,
                          'public_state', e.public_state, 'lease_epoch', e.lease_epoch,
                          'attempt_index', e.current_attempt_index));
end
$$;
