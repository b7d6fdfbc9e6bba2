-- Locks the next execution of a lane that a worker may take: priority, then age, over all the capability sets it covers.
-- Rows locked by others are stepped over, rows with a live grant or of a flow that is stopped skipped, overdue ones
-- healed in passing (at most 64 of these).
-- Returns the row opened (see ff__open), or a row of NULLs. One set, the usual case, takes one statement.
create or replace function ff__pick(p_lane_id text, p_keys text[], p_namespace text) returns ff_exec
language plpgsql volatile
as $$
declare
    v_none ff_exec;
    e ff_exec;
begin
    for v_heals in 0..64 loop
        e := v_none;
        if cardinality(p_keys) = 1 then
            select c.execution_id, c.partition_key, c.flow_id, c.namespace, c.lane_id, c.lifecycle_phase, c.ownership_state,
                   c.eligibility_state, c.attempt_state, c.terminal_outcome, c.public_state, c.current_attempt_index,
                   c.current_attempt_id, c.total_attempt_count, c.retry_count, c.lease_reclaim_count, c.lease_id,
                   c.lease_epoch, c.lease_ttl_ms, c.lease_expires_at_ms, c.attempt_timeout_at_ms,
                   c.attempt_remaining_ms, c.deadline_at_ms, c.delay_until_ms, c.worker_id, c.worker_instance_id,
                   greatest(pg_current_xact_id()::text::bigint, c.last_event_ord), null::bigint, null, null
              into e
              from ff_exec_core c
             where c.lane_id = p_lane_id and c.caps_key = p_keys[1]
               and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
               and (p_namespace is null or c.namespace = p_namespace)
               and (c.flow_id is null
                    or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true))
               and not exists (select from ff_claim_grant g
                                where g.execution_id = c.execution_id and g.expires_at_ms > ff_now_ms())
             order by c.priority desc, c.created_at_ms, c.execution_id
             limit 1 for update of c skip locked;
        else
            e := ff__open((ff__pick_many(p_lane_id, p_keys, p_namespace, 1))[1]);
        end if;
        if e.execution_id is null then
            return e;
        end if;
        e.now_ms := ff_now_ms();
        if not ff__granted(e) and (e.flow_id is null or ff__flow_claimable(e.flow_id)) and not ff__heal(e) then
            return e;
        end if;
    end loop;
    return v_none;
end
$$;
