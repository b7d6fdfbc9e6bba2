-- Locks: the executions, in the order of their ids. Each item is checked as by ff_complete.
create or replace function ff_complete_many(
    p_handles text[], p_results bytea[] default null, p_result_encoding text default null
) returns table (
    ordinal int, outcome text, public_state text, terminal_at_ms bigint, replayed boolean, error_kind text
)
language plpgsql volatile security definer
as $$
declare
    v_count int := cardinality(p_handles);
    v_limit int;
    v_fitting text[];
    v_fence ff_fence;
    v_ended uuid[];
    v_now bigint;
    e ff_exec;
begin
    if p_handles is null then
        perform ff__invalid('p_handles', 'must not be null');
    elsif array_ndims(p_handles) > 1 then
        perform ff__invalid('p_handles', 'must have one dimension');
    elsif v_count > 1000 then
        perform ff__invalid('p_handles', 'must have at most 1000 items');
    elsif array_ndims(p_results) > 1 then
        perform ff__invalid('p_results', 'must have one dimension');
    elsif cardinality(p_results) <> v_count then
        perform ff__invalid('p_results', 'must have as many items as p_handles');
    elsif p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    p_handles := p_handles[:]; -- makes the lower bound 1
    p_results := p_results[:];
    if (select max(octet_length(x.result)) from unnest(p_results) x(result)) > 1024 then
        v_limit := ff__engine_limit('max_execution_bytes');
    end if;
    v_fitting := case when v_limit is null then p_handles
                      else array(select case when octet_length(x.result) <= v_limit or x.result is null
                                             then p_handles[x.n] end
                                   from unnest(p_results) with ordinality x(result, n) order by x.n) end;
    select c.ended, c.now_ms into v_ended, v_now from ff__complete(v_fitting, p_results, p_result_encoding) c;
    if cardinality(v_ended) = v_count then
        return query select g.n, 'completed', 'completed', v_now, false, null from generate_series(1, v_count) g(n);
        return;
    end if;
    for v_n in 1..v_count loop
        ordinal := v_n;
        replayed := false;
        error_kind := null;
        terminal_at_ms := null;
        v_fence := ff__parse_handle(p_handles[v_n]);
        if octet_length(p_results[v_n]) > v_limit then
            error_kind := 'payload_too_large';
        elsif v_fence.lease_id is null then
            error_kind := case when p_handles[v_n] is null then 'invalid_input' else 'invalid_handle' end;
        elsif v_fence.execution_id = any (v_ended) and array_position(v_fitting, p_handles[v_n]) = v_n
              and (select ff__encode_handle(c.partition_key, c.execution_id, c.attempt_index, c.lease_id, c.lease_epoch,
                                            c.attempt_id) = p_handles[v_n]
                     from ff_execution c where c.execution_id = v_fence.execution_id)
        then
            terminal_at_ms := v_now;
        else
            e := ff__open(v_fence.execution_id);
            error_kind := ff__fence_status(e, v_fence, 'complete');
            if error_kind is null then
                terminal_at_ms := e.now_ms;
                perform ff__complete_one(e, 'complete', p_results[v_n], p_result_encoding);
            elsif error_kind = 'replay' then
                error_kind := null;
                replayed := true;
                terminal_at_ms := (ff__recorded_release(v_fence, 'complete')).ended_at_ms;
            end if;
        end if;
        outcome := case when error_kind is null then 'completed' else 'refused' end;
        public_state := case when error_kind is null then 'completed' end;
        return next;
    end loop;
end
$$;

comment on function ff_complete_many(text[], bytea[], text) is
$$ff_complete for up to 1000 handles in one call. Returns one row per handle, in their order. Each handle is checked on
its own: one that ff_complete would reject gets outcome refused with that error_kind and changes nothing; the others
complete.

Outcomes: outcome = completed | refused
Nullable: public_state, terminal_at_ms, error_kind
Errors: invalid_input$$;
-- grant: ff_worker, ff_admin

-- Completes, as a set, executions whose fences hold and whose attempts leave nothing open. Locks the rows in the order
-- of their ids (waits for them). Returns the ids of those that ended; the caller handles the others one by one.
create or replace function ff__complete(
    p_handles text[], p_results bytea[], p_result_encoding text, out ended uuid[], out now_ms bigint
)
language plpgsql volatile
as $$
declare
    v_ids uuid[] := ff__handle_ids(p_handles);
begin
    now_ms := ff__lock_executions(v_ids);
    ended := ff__end(v_ids, ('complete', 'success', null, null, null, null, 'released', 'complete')::ff_ending,
                     'success', now_ms, p_handles => p_handles, p_results => p_results,
                     p_result_encoding => p_result_encoding);
end
$$;
