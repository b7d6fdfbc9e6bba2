-- Locks: the flow, the execution (waits for them). Replay with the same fence: the recorded outcome, nothing written.
create or replace function ff_wait_children_execution(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_source text default 'lease_holder',
    out outcome text,
    out pending_children int,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v_override boolean := ff__is_override(p_execution_id, p_source, p_lease_id, p_lease_epoch, p_attempt_id);
    v record;
begin
    v := ff__wait_children(
        ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch, p_attempt_id, v_override),
        v_override);
    outcome := v.outcome;
    pending_children := v.pending_children;
    replayed := v.replayed;
end
$$;

comment on function ff_wait_children_execution(text, int, uuid, bigint, uuid, text) is
$$ff_wait_children by explicit fence. p_source operator_override, without a fence, pauses an active execution in
place of the lease holder. Members of ff_operator and ff_admin, and the owner of the schema, may do so.

Outcomes: outcome = ready | waiting | skipped
Errors: invalid_input, override_not_allowed, invalid_execution_id, fence_required, partial_fence, execution_not_found
Errors: execution_not_active, stale_lease, lease_revoked, lease_expired, flow_cancelled$$;
-- grant: ff_worker, ff_operator, ff_admin
