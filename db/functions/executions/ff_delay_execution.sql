-- Locks: the execution. Replay with the same fence: the recorded outcome, nothing written.
create or replace function ff_delay_execution(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_delay_until_ms bigint default null,
    p_delay_ms bigint default null,
    p_source text default 'lease_holder',
    out outcome text,
    out public_state text,
    out delay_until_ms bigint,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v_override boolean := ff__is_override(p_execution_id, p_source, p_lease_id, p_lease_epoch, p_attempt_id);
    v record;
begin
    v := ff__delay(ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch, p_attempt_id,
                                            v_override),
                   p_delay_until_ms, p_delay_ms, v_override);
    outcome := case when v.delay_until_ms is null then 'eligible' else 'delayed' end;
    public_state := v.public_state;
    delay_until_ms := v.delay_until_ms;
    replayed := v.replayed;
end
$$;

comment on function ff_delay_execution(text, int, uuid, bigint, uuid, bigint, bigint, text) is
$$ff_delay with an explicit fence. p_source operator_override, without a fence, delays an active execution in place of
the lease holder; it requires membership in ff_operator or ff_admin, or ownership of the schema.

Outcomes: outcome = delayed | eligible
Nullable: delay_until_ms
Errors: invalid_input, override_not_allowed, invalid_execution_id, fence_required, partial_fence, execution_not_found
Errors: execution_not_active, stale_lease, lease_revoked, lease_expired, flow_cancelled$$;
-- grant: ff_worker, ff_operator, ff_admin
