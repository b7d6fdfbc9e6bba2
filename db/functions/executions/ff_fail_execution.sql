-- Locks: the execution. Replay with the same fence: the recorded outcome, nothing written.
create or replace function ff_fail_execution(
    p_execution_id text,
    p_attempt_index int default null,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    p_reason text default '',
    p_classification text default 'transient',
    p_category text default null,
    p_source text default 'lease_holder',
    p_retry_after_ms bigint default null,
    out outcome text,
    out public_state text,
    out delay_until_ms bigint,
    out next_attempt_index int,
    out retry_count int,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v_override boolean := ff__is_override(p_execution_id, p_source, p_lease_id, p_lease_epoch, p_attempt_id);
    v jsonb;
begin
    v := ff__fail_verb(ff__fence_from_arguments(p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch,
                                                p_attempt_id, v_override),
                       p_reason, p_classification, p_category, p_retry_after_ms, v_override);
    outcome := v ->> 'outcome';
    public_state := v ->> 'public_state';
    delay_until_ms := (v ->> 'delay_until_ms')::bigint;
    next_attempt_index := (v ->> 'next_attempt_index')::int;
    retry_count := (v ->> 'retry_count')::int;
    replayed := (v ->> 'replayed')::boolean;
end
$$;

comment on function ff_fail_execution(text, int, uuid, bigint, uuid, text, text, text, text, bigint) is
$$ff_fail with an explicit fence. p_source operator_override, without a fence, fails an active execution in place of the
lease holder; it requires membership in ff_operator or ff_admin, or ownership of the schema.

Outcomes: outcome = retry_scheduled | terminal_failed
Nullable: delay_until_ms, next_attempt_index
Errors: invalid_input, override_not_allowed, invalid_execution_id, fence_required, partial_fence, execution_not_found
Errors: execution_not_active, stale_lease, lease_revoked, lease_expired$$;
-- grant: ff_worker, ff_operator, ff_admin
