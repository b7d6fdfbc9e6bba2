-- The fence: whether a fence is that of an execution's live lease. The one place that says so. Plain SQL, so that it is put
-- into the statement that asks. An attempt index of NULL is not compared.
create or replace function ff__fence_holds(
    c ff_execution, p_now_ms bigint, p_lease_id uuid, p_lease_epoch bigint, p_attempt_id uuid, p_attempt_index int
) returns boolean
language sql immutable parallel safe
as $$
    select (c).state = 'leased' and (c).lease_expires_at_ms > p_now_ms and (c).lease_id = p_lease_id
       and (c).lease_epoch = p_lease_epoch and (c).attempt_id = p_attempt_id
       and ((c).attempt_index = p_attempt_index or p_attempt_index is null)
$$;
