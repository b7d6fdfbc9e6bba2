-- Locks: the execution. Repeatable.
create or replace function ff_update_progress(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_percent int default null,
    p_message text default null,
    out progress_pct int,
    out progress_updated_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v record;
begin
    v := ff__progress(
        ff__fence(ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch, p_attempt_id)),
        p_percent, p_message);
    progress_pct := v.progress_pct;
    progress_updated_at_ms := v.progress_updated_at_ms;
end
$$;

comment on function ff_update_progress(text, int, uuid, bigint, uuid, int, text) is
$$ff_progress with an explicit fence instead of a handle.

Nullable: progress_pct
Errors: invalid_input, invalid_execution_id, fence_required, partial_fence, execution_not_found, execution_not_active
Errors: stale_lease, lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
