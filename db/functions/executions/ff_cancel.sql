-- Locks: the execution. Replay with the same handle: the recorded outcome, nothing written.
create or replace function ff_cancel(
    p_handle text,
    p_reason text default '',
    out outcome text,
    out public_state text,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec := ff__fence(ff__decode_handle(p_handle), 'cancel');
begin
    outcome := 'cancelled';
    public_state := 'cancelled';
    replayed := e.execution_id is null;
    if not replayed then
        perform ff__cancel(e, 'cancel', left(coalesce(p_reason, ''), 4096), 'lease_holder');
    end if;
end
$$;

comment on function ff_cancel(text, text) is
$$The lease holder cancels its execution: the execution ends cancelled. p_reason is cut at 4096 characters.

Outcomes: outcome = cancelled
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_admin
