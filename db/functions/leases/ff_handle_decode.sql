create or replace function ff_handle_decode(
    p_handle text,
    out execution_id text,
    out attempt_index int,
    out lease_id uuid,
    out lease_epoch bigint,
    out attempt_id uuid
)
language plpgsql immutable security definer
as $$
declare
    v_fence ff_fence := ff__decode_handle(p_handle);
begin
    execution_id := v_fence.wire_id;
    attempt_index := v_fence.attempt_index;
    lease_id := v_fence.lease_id;
    lease_epoch := v_fence.lease_epoch;
    attempt_id := v_fence.attempt_id;
end
$$;

comment on function ff_handle_decode(text) is
$$Unpacks a handle into execution id, attempt index and fence. Reads no table.

Errors: invalid_input, invalid_handle$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
