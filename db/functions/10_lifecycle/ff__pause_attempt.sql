-- A running attempt pauses: its row and the record of the release. The caller moves the execution on and emits the end of
-- the lease. p_op as in ff__end_attempt; of the pauses of one attempt only the latest is remembered.
create or replace function ff__pause_attempt(
    e ff_exec, p_op text, p_release_detail jsonb default null
) returns ff_exec
language plpgsql volatile
as $$
begin
    update ff_attempt a set
        state = 'suspended', suspended_at_ms = e.now_ms, release_op = p_op, release_lease_id = e.lease_id,
        release_lease_epoch = e.lease_epoch, release_at_ms = e.now_ms, release_detail = p_release_detail
     where a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index;
    return e;
end
$$;
