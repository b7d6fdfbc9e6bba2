-- Locks: the executions, in the order of their ids. Each item is judged as ff_complete would. Set-based; members of
-- flows go through the single body.
create or replace function ff_complete_many(
    p_handles text[], p_results bytea[] default null, p_result_encoding text default null
) returns table (
    ordinal int, outcome text, public_state text, terminal_at_ms bigint, replayed boolean, error_kind text
)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
    v_count int := cardinality(p_handles);
    v_fences ff_fence[];
    v_done int[];
    v_now bigint;
    v_xid bigint;
    v_verdict text;
begin
    if p_handles is null then
        perform ff__invalid('p_handles', 'must not be null');
    elsif v_count > 1000 then
        perform ff__invalid('p_handles', 'must have at most 1000 items');
    elsif cardinality(p_results) <> v_count then
        perform ff__invalid('p_results', 'must have as many items as p_handles');
    elsif p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    v_fences := array(select ff__parse_handle(x.handle) from unnest(p_handles) with ordinality x(handle, n) order by x.n);
    v_now := ff__open_many(v_fences);
    v_xid := pg_current_xact_id()::text::bigint;

    with x as materialized (
        -- Of two handles of one execution only the first can hold its lease.
        select distinct on (c.execution_id)
               f.n, c.execution_id, c.partition_key, c.flow_id, c.lane_id, c.namespace, c.current_attempt_index,
               c.lease_id, c.lease_epoch, c.worker_id, c.worker_instance_id,
               greatest(v_xid, c.last_event_ord) as ord, i.tags
          from unnest(v_fences) with ordinality
               f(execution_id, wire_id, attempt_index, lease_id, lease_epoch, attempt_id, n)
          join ff_exec_core c
            on c.execution_id = f.execution_id and c.lease_id = f.lease_id and c.lease_epoch = f.lease_epoch
           and c.current_attempt_id = f.attempt_id and c.current_attempt_index = f.attempt_index
          join ff_exec_input i on i.execution_id = c.execution_id
         where c.ownership_state = 'leased' and c.lease_expires_at_ms > v_now and c.flow_id is null
         order by c.execution_id, f.n
    ), attempts as (
        update ff_attempt a set
            state = 'ended_success', outcome = 'success', ended_at_ms = v_now, result = p_results[x.n],
            result_encoding = p_result_encoding, release_op = 'complete', release_lease_id = x.lease_id,
            release_lease_epoch = x.lease_epoch, release_at_ms = v_now
          from x where a.execution_id = x.execution_id and a.attempt_index = x.current_attempt_index
    ), ended as (
        update ff_exec_core c set
            lifecycle_phase = 'terminal', ownership_state = 'unowned', eligibility_state = 'not_applicable',
            blocking_reason = 'none', terminal_outcome = 'success', attempt_state = 'attempt_terminal',
            current_attempt_id = null, lease_id = null, lease_ttl_ms = null, lease_expires_at_ms = null,
            lease_check_at_ms = null, worker_id = null, worker_instance_id = null, attempt_timeout_at_ms = null,
            terminal_at_ms = v_now, last_transition_at_ms = v_now, last_mutation_at_ms = v_now, last_event_ord = x.ord
          from x where c.execution_id = x.execution_id
    ), events as (
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, outcome, lease_id, lease_epoch, worker_id, worker_instance_id)
        select f.family, v.event_type, g.gen, x.ord, v_now, x.execution_id, x.partition_key, x.flow_id, x.lane_id,
               x.namespace, x.tags, x.current_attempt_index, v.reason, v.outcome,
               case v.k when 1 then x.lease_id end, case v.k when 1 then x.lease_epoch end,
               case v.k when 1 then x.worker_id end, case v.k when 1 then x.worker_instance_id end
          from x
         cross join (values (1, 'lease', 'released', 'complete', null), (2, 'completion', 'success', null, 'success'))
                    v(k, family, event_type, reason, outcome)
          join ff_event_family f
            on f.family = v.family and v.event_type <> all (f.muted) and '*' <> all (f.muted)
           and (f.notify <> 'commit' or ff__ring(f.family))
         cross join ff_event_generation g
         where g.id
         order by x.n, v.k
    )
    select coalesce(array_agg(x.n::int), '{}') into v_done from x;

    for v_n in 1..v_count loop
        ordinal := v_n;
        replayed := false;
        terminal_at_ms := null;
        error_kind := null;
        if ordinal = any (v_done) then
            terminal_at_ms := v_now;
        elsif p_handles[ordinal] is null then
            error_kind := 'invalid_input';
        elsif (v_fences[ordinal]).lease_id is null then
            error_kind := 'invalid_handle';
        else
            v_verdict := ff__verdict(ff__open((v_fences[ordinal]).execution_id), v_fences[ordinal], 'complete');
            if v_verdict is null then
                -- A member of a flow: its end is more than its own.
                terminal_at_ms := (ff__complete(v_fences[ordinal], p_results[ordinal], p_result_encoding)).terminal_at_ms;
            elsif v_verdict = 'replay' then
                replayed := true;
                terminal_at_ms := (ff__recorded_release(v_fences[ordinal], 'complete')).ended_at_ms;
            else
                error_kind := v_verdict;
            end if;
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
