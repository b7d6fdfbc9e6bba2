-- Locks: the execution. Replay with the same handle: the recorded outcome, nothing written.
create or replace function ff_delay(
    p_handle text,
    p_delay_until_ms bigint default null,
    p_delay_ms bigint default null,
    out outcome text,
    out public_state text,
    out delay_until_ms bigint,
    out replayed boolean
)
language plpgsql volatile security definer
as $$
declare
    v record;
begin
    v := ff__delay(ff__decode_handle(p_handle), p_delay_until_ms, p_delay_ms);
    outcome := case when v.delay_until_ms is null then 'eligible' else 'delayed' end;
    public_state := v.public_state;
    delay_until_ms := v.delay_until_ms;
    replayed := v.replayed;
end
$$;

comment on function ff_delay(text, bigint, bigint) is
$$Pauses the attempt until a time (p_delay_until_ms) or for a duration (p_delay_ms); exactly one must be given. The
lease ends. The next claim after that time resumes the same attempt, and no retry is counted. If the time is not in the
future, the execution is claimable at once.

Outcomes: outcome = delayed | eligible
Nullable: delay_until_ms
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease
Errors: lease_revoked, lease_expired, flow_cancelled$$;
-- grant: ff_worker, ff_admin
