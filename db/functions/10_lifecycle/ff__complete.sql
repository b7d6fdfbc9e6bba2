-- Success: the attempt and the execution end. p_op: complete, or override when it was not the lease holder.
create or replace function ff__complete(e ff_exec, p_op text, p_result bytea, p_result_encoding text) returns ff_exec
language plpgsql volatile
as $$
begin
    return ff__terminate(ff__end_attempt(e, p_op, 'ended_success', 'success', null, null, null, p_result,
                                         p_result_encoding), 'success', p_lease_reason => p_op);
end
$$;
