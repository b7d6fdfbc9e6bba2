-- Completes executions whose fences hold and whose attempts leave nothing open, as a set; the rows are locked in the order of
-- their ids (waits for them). Returns the ids of those that ended; the others are left to ff__complete_one.
create or replace function ff__complete(
    p_fences ff_fence[], p_results bytea[], p_result_encoding text, out ended uuid[], out now_ms bigint
)
language plpgsql volatile
as $$
begin
    now_ms := ff__lock_fences(p_fences);
    ended := ff__end(p_fences, ('complete', 'success', null, null, null, null, 'released', 'complete')::ff_ending, 'success',
                     now_ms, p_results => p_results, p_result_encoding => p_result_encoding);
end
$$;

-- Success of one execution that was opened. p_op: complete, or override when it was not the lease holder.
create or replace function ff__complete_one(e ff_exec, p_op text, p_result bytea, p_result_encoding text) returns void
language plpgsql volatile
as $$
begin
    perform ff__terminate(e, ff__end_attempt(e, p_op, 'success', p_op), 'success', p_result => p_result,
                          p_result_encoding => p_result_encoding);
end
$$;
