-- The fence of a typed verb; none is needed for an override. Errors: invalid_execution_id, fence_required,
-- partial_fence.
create or replace function ff__fence_of(
    p_execution_id text,
    p_attempt_index int,
    p_lease_id uuid,
    p_lease_epoch bigint,
    p_attempt_id uuid,
    p_override boolean default false
) returns ff_fence
language plpgsql stable
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    if num_nulls(p_lease_id, p_lease_epoch, p_attempt_id) = 3 and not p_override then
        perform ff__raise('fence_required', 'the call needs lease_id, lease_epoch and attempt_id',
                          jsonb_build_object('execution_id', p_execution_id));
    elsif num_nulls(p_lease_id, p_lease_epoch, p_attempt_id) in (1, 2) then
        perform ff__raise('partial_fence', 'lease_id, lease_epoch and attempt_id belong together',
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    return (v_id, p_execution_id, p_attempt_index, p_lease_id, p_lease_epoch, p_attempt_id)::ff_fence;
end
$$;
