-- The attempt whose lease with this fence was given up by p_op, or a row of NULLs. The memory behind the replay rule.
create or replace function ff__recorded_release(p_fence ff_fence, p_op text) returns ff_attempt
language plpgsql stable
as $$
declare
    a ff_attempt;
begin
    select t.* into a from ff_attempt t
     where t.execution_id = p_fence.execution_id
       and t.release_lease_id = p_fence.lease_id and t.release_lease_epoch = p_fence.lease_epoch
       and t.attempt_id = p_fence.attempt_id
       and t.release_op = p_op;
    return a;
end
$$;
