-- What a claim answers for a row that ff__lease has leased. Plain SQL, so that it is inlined into the caller's query.
create or replace function ff__claimed(e ff_exec) returns setof ff_claim_row
language sql stable
as $$
    select ff__encode_handle((e).partition_key, (e).execution_id, (e).current_attempt_index, (e).lease_id, (e).lease_epoch,
                             (e).current_attempt_id),
           (e).handle_kind, ff__wire_id((e).partition_key, (e).execution_id), (e).namespace, (e).lane_id, (e).flow_id,
           i.execution_kind, i.payload, i.payload_encoding, i.tags, (e).priority, (e).current_attempt_index,
           (e).current_attempt_id, (e).attempt_type, (e).lease_id, (e).lease_epoch, (e).lease_expires_at_ms,
           (e).attempt_timeout_at_ms, (e).deadline_at_ms
      from ff_exec_input i where i.execution_id = (e).execution_id
$$;
