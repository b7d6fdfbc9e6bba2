-- Locks: the execution. Repeatable.
create or replace function ff_progress(
    p_handle text,
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
    v := ff__progress(ff__fence(ff__decode_handle(p_handle)), p_percent, p_message);
    progress_pct := v.progress_pct;
    progress_updated_at_ms := v.progress_updated_at_ms;
end
$$;

comment on function ff_progress(text, int, text) is
$$Stores the progress of the attempt: 0 to 100 percent, a message (cut at 4096 characters), or both; NULL leaves a value
unchanged. A new attempt starts without progress. Does not extend the lease.

Nullable: progress_pct
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
