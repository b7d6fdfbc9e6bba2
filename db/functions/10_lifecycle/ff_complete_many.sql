-- Locks: the executions, in the order of their ids. Each item is judged as ff_complete would.
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
    v_ids uuid[];
    v_done int[];
    v_limited uuid[];
    v_now bigint;
    v_xid bigint;
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
    p_handles := p_handles[:]; -- from index 1 on, whatever the caller's bounds
    p_results := p_results[:];
    v_ids := ff__handle_ids(p_handles);
    if (select max(octet_length(x.result)) from unnest(p_results) x(result)) > 1024 then
        -- What is too large is left to ff__complete_one, which refuses it.
        v_limit := ff__limit('max_execution_bytes');
        v_ids := array(select case when octet_length(x.result) > v_limit then null else x.id end
                         from unnest(v_ids, p_results) with ordinality x(id, result, n) order by x.n);
    end if;
    v_now := ff__open_many(v_ids);
    v_xid := pg_current_xact_id()::text::bigint;
    -- ff__end_attempt, ff__terminate and ff__emit for those that hold their lease and have nothing hanging off them.
    with ended as (
        update ff_exec_core c set
            lifecycle_phase = 'terminal', ownership_state = 'unowned', terminal_outcome = 'success',
            attempt_state = 'attempt_terminal', current_attempt_id = null, lease_id = null, lease_ttl_ms = null,
            lease_expires_at_ms = null, lease_check_at_ms = null, worker_id = null, worker_instance_id = null,
            attempt_timeout_at_ms = null, terminal_at_ms = v_now, last_transition_at_ms = v_now,
            last_mutation_at_ms = v_now, last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(v_ids, p_handles) with ordinality x(id, handle, n)
         where c.execution_id = any (array[x.id]) -- see ff__open_many
           -- CASE, so that no plan reads all that is leased.
           and case when c.ownership_state = 'leased' and c.lease_expires_at_ms > v_now and c.flow_id is null
                         and c.open_waitpoints = 0 and not c.stream_open
                    then x.handle = ff__encode_handle(c.partition_key, c.execution_id, c.current_attempt_index, c.lease_id,
                                                      c.lease_epoch, c.current_attempt_id) end
        returning x.n, c.execution_id, c.lane_id, c.namespace, c.current_attempt_index, c.tagged,
                  c.last_event_ord, c.limited
    ), attempts as (
        update ff_attempt a set
            state = 'ended_success', outcome = 'success', ended_at_ms = v_now, result = p_results[e.n],
            result_encoding = p_result_encoding, release_op = 'complete', release_lease_id = a.lease_id,
            release_lease_epoch = a.lease_epoch, release_at_ms = v_now
          from ended e where a.execution_id = any (array[e.execution_id]) and a.attempt_index = e.current_attempt_index
        returning e.execution_id, e.lane_id, e.namespace, e.current_attempt_index, e.tagged, e.last_event_ord,
                  a.lease_id, a.lease_epoch, a.worker_id, a.worker_instance_id
    ), events as materialized (
        select ff__emit_many('completion', 'success', null, v_now, e.last_event_ord, array_agg(e.execution_id),
                             array_agg(e.current_attempt_index), null, array_agg(e.lane_id), array_agg(e.namespace),
                             array_agg(case when e.tagged then (select i.tags from ff_exec_input i
                                                                 where i.execution_id = e.execution_id) end),
                             array_agg(e.lease_id), array_agg(e.lease_epoch), e.worker_id, e.worker_instance_id,
                             'released', 'complete')
          from attempts e group by e.last_event_ord, e.worker_id, e.worker_instance_id
    )
    select coalesce(array_agg(e.n::int), '{}'), array_agg(e.execution_id) filter (where e.limited)
      into v_done, v_limited from ended e where (select count(*) from events) > 0; -- runs it
    if v_limited is not null then
        perform ff__free_slots(v_limited, v_now);
    end if;
    if cardinality(v_done) = v_count then
        return query select g.n, 'completed', 'completed', v_now, false, null from generate_series(1, v_count) g(n);
        return;
    end if;
    for v_n in 1..v_count loop
        ordinal := v_n;
        replayed := false;
        terminal_at_ms := v_now;
        error_kind := null;
        if v_n <> all (v_done) then
            select j.terminal_at_ms, j.replayed, j.error_kind
              into ff_complete_many.terminal_at_ms, ff_complete_many.replayed, ff_complete_many.error_kind
              from ff__complete_one(p_handles[v_n], p_results[v_n], p_result_encoding) j;
        end if;
        outcome := case when error_kind is null then 'completed' else 'refused' end;
        public_state := case when error_kind is null then 'completed' end;
        return next;
    end loop;
end
$$;

comment on function ff_complete_many(text[], bytea[], text) is
$$ff_complete for up to 1000 handles in one call. One row per handle, in their order; each is judged on its own: one that
ff_complete would refuse is refused with that error_kind and changes nothing, the others complete.

Outcomes: outcome = completed | refused
Nullable: public_state, terminal_at_ms, error_kind
Errors: invalid_input$$;
