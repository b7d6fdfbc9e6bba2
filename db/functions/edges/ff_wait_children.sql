-- Locks: the flow, the execution (waits for them). Replay with the same handle: the recorded outcome, nothing written.
create or replace function ff_wait_children(
    p_handle text, out outcome text, out pending_children int, out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v record;
begin
    v := ff__wait_children(ff__decode_handle(p_handle));
    outcome := v.outcome;
    pending_children := v.pending_children;
    replayed := v.replayed;
end
$$;

comment on function ff_wait_children(text) is
$$Pauses the attempt until the executions that it waits for have ended as its edges require. ready: there is nothing to
wait for, the lease stays and the worker continues. waiting: the lease has ended; a later claim continues the same
attempt. skipped: the condition can no longer be met, the execution has ended. A parent that must handle failures uses
any_terminal edges.

Outcomes: outcome = ready | waiting | skipped
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired, flow_cancelled$$;
-- grant: ff_worker, ff_admin
