-- The handle of a lease: ff1.execution.lease.attempt.partition.attempt_index.lease_epoch. The uuids come first, at
-- fixed places, so that decoding needs no search. ff__decode_handle is its inverse.
create or replace function ff__encode_handle(
    p_partition smallint,
    p_execution_id uuid,
    p_attempt_index int,
    p_lease_id uuid,
    p_lease_epoch bigint,
    p_attempt_id uuid
) returns text
language sql immutable parallel safe
as $$
    select 'ff1.' || p_execution_id::text || '.' || p_lease_id::text || '.' || p_attempt_id::text || '.'
        || p_partition::text || '.' || p_attempt_index::text || '.' || p_lease_epoch::text
$$;
