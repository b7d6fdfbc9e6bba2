-- Locks: the execution. Repeatable.
create or replace function ff_mark_lease_expired_if_due(p_execution_id text, out outcome text, out reason text)
language plpgsql volatile security definer
as $$
declare
    e ff_exec := ff__open(ff__execution_uuid(p_execution_id));
begin
    reason := case
        when e.execution_id is null then 'not_found'
        when e.lifecycle_phase <> 'active' then 'not_active'
        when e.ownership_state = 'lease_expired_reclaimable' then 'already_expired'
        when e.ownership_state = 'lease_revoked' then 'already_revoked'
        when e.lease_expires_at_ms > e.now_ms then 'not_yet_expired' end;
    outcome := case when reason is null then 'marked_expired' else 'already_satisfied' end;
    if reason is null then
        perform ff__mark_expired(e);
    end if;
end
$$;

comment on function ff_mark_lease_expired_if_due(text) is
$$Marks a lease that has expired, so that the execution shows as reclaimable. The next claim does the same.
already_satisfied with reason not_found, not_active, already_expired, already_revoked or not_yet_expired.

Outcomes: outcome = marked_expired | already_satisfied
Nullable: reason
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_operator, ff_admin
