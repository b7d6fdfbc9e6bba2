-- The handle of a lease: ff1.execution.lease.attempt.partition.attempt_index.lease_epoch. The uuids come first, at
-- fixed places, so that decoding needs no search. ff__decode_handle is its inverse. STABLE because concat_ws is: an SQL
-- function that promises more than its body is not inlined.
create or replace function ff__encode_handle(
    p_partition smallint,
    p_execution_id uuid,
    p_attempt_index int,
    p_lease_id uuid,
    p_lease_epoch bigint,
    p_attempt_id uuid
) returns text
language sql stable parallel safe
as $$
    select concat_ws('.', 'ff1', p_execution_id, p_lease_id, p_attempt_id, p_partition, p_attempt_index, p_lease_epoch)
$$;
