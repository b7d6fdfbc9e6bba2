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
$$Pauses the attempt until a time, given as such or as a length, one of the two. The lease ends; the next claim after that
time goes on with the same attempt, and no retry is counted. A time that is not in the future makes it claimable at once.

Outcomes: outcome = delayed | eligible
Nullable: delay_until_ms
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired, flow_cancelled$$;
