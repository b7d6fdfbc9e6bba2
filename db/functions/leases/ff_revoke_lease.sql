-- Locks: the execution. Repeatable: returns already_satisfied with the reason.
create or replace function ff_revoke_lease(
    p_execution_id text,
    p_reason text default 'operator',
    p_expected_lease_id uuid default null,
    p_worker_instance_id text default null,
    out outcome text,
    out reason text,
    out lease_id uuid,
    out lease_epoch bigint
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    perform ff__check_text('p_reason', p_reason, 0, 4096);
    e := ff__lock_execution(p_execution_id);
    outcome := 'already_satisfied';
    lease_id := e.lease_id;
    lease_epoch := case when e.lease_id is not null then e.lease_epoch end;
    if e.lifecycle_phase <> 'active' then
        reason := 'no_active_lease';
    elsif e.ownership_state = 'lease_revoked' then
        reason := 'already_revoked';
    elsif e.ownership_state <> 'leased' or e.lease_expires_at_ms <= e.now_ms then
        reason := 'already_expired';
    elsif p_expected_lease_id <> e.lease_id then
        reason := 'lease_id_mismatch';
        lease_id := null;
        lease_epoch := null;
    elsif p_worker_instance_id <> e.worker_instance_id then
        reason := 'different_worker_instance';
        lease_id := null;
        lease_epoch := null;
    else
        outcome := 'revoked';
        reason := p_reason;
        e := ff__emit(e, 'operator', 'lease_revoked', p_reason,
                      jsonb_build_object('lease_epoch', e.lease_epoch, 'worker_instance_id', e.worker_instance_id));
        perform ff__revoke(e, p_reason);
    end if;
end
$$;

comment on function ff_revoke_lease(text, text, uuid, text) is
$$Revokes a live lease. Other workers can claim the execution at once; calls of the former holder fail with
lease_revoked. p_expected_lease_id, p_worker_instance_id: revoke only that lease, only if that worker holds it.
already_satisfied with reason no_active_lease, already_revoked, already_expired, lease_id_mismatch or
different_worker_instance.

Outcomes: outcome = revoked | already_satisfied
Nullable: lease_id, lease_epoch
Errors: invalid_input, invalid_execution_id, execution_not_found$$;
-- grant: ff_operator, ff_admin
