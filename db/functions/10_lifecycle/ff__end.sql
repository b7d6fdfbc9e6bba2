-- The only way into terminal, over a set: executions that the caller has locked, or those of the fences that hold and whose
-- attempts leave nothing open. a: how
-- their attempts end, if they have one that is open (a is NULL otherwise); p_results: what the attempts answer.
-- One update, one event per execution (the end of the lease with it); grants are deleted, slots freed, ends of members are
-- passed on in their flows, children of those that did not succeed are cancelled. Returns the ids of those that ended, in
-- the order of p_fences. A fence without a lease is not compared.
-- Joins as "= any (array[..])": plans are made once per session, maybe while the tables are small, and this can be an index
-- condition, but cannot be merged, hashed or sorted for.
create or replace function ff__end(
    p_fences ff_fence[],
    a ff_ending,
    p_outcome text,
    p_now_ms bigint,
    p_reason text default null,
    p_category text default null,
    p_by text default null,
    p_results bytea[] default null,
    p_result_encoding text default null,
    p_defer_ends boolean default false
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_state ff_state := case p_outcome when 'success' then 'completed' else p_outcome end;
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_failure boolean := p_outcome in ('failed', 'expired', 'skipped');
    v_cancelled boolean := p_outcome = 'cancelled';
    v_attempt boolean := a.outcome is not null;
    v_release boolean := a.op is not null;
    v_ids uuid[];
    v_granted boolean;
    v_limited boolean;
    v_members boolean;
    v_events record;
    v_id uuid;
begin
    with ended as (
        update ff_execution c set
            state = v_state, ready_in = null, due_at_ms = null, terminal_at_ms = p_now_ms,
            attempt_outcome = case when v_attempt then a.outcome else c.attempt_outcome end,
            attempt_ended_at_ms = case when v_attempt then p_now_ms else c.attempt_ended_at_ms end,
            attempt_failure_reason = case when v_attempt then a.failure_reason else c.attempt_failure_reason end,
            attempt_failure_category = case when v_attempt then a.failure_category else c.attempt_failure_category end,
            attempt_classification = case when v_attempt then a.classification else c.attempt_classification end,
            result = case when v_release then x.result else c.result end,
            result_encoding = case when v_release then p_result_encoding else c.result_encoding end,
            release_op = case when v_release then a.op else c.release_op end,
            release_at_ms = case when v_release then p_now_ms else c.release_at_ms end,
            release_detail = case when v_release then a.detail else c.release_detail end,
            release_lease_id = case when not v_release then c.release_lease_id end,
            release_lease_epoch = case when not v_release then c.release_lease_epoch end,
            failure_reason = case when v_failure then p_reason end,
            failure_category = case when v_failure then p_category end,
            cancellation_reason = case when v_cancelled then p_reason end,
            cancelled_by = case when v_cancelled then p_by end,
            blocking_detail = null, blocked_budget_id = null, current_suspension_id = null, current_waitpoint_id = null,
            attempt_timeout_at_ms = null, attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null,
            granted = false, last_transition_at_ms = p_now_ms, last_mutation_at_ms = p_now_ms,
            last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(p_fences, p_results) with ordinality x(
               execution_id, wire_id, attempt_index, lease_id, lease_epoch, attempt_id, result, n)
         where c.execution_id = any (array[x.execution_id])
           and (x.lease_id is null
                or ff__fence_holds(c, p_now_ms, x.lease_id, x.lease_epoch, x.attempt_id, x.attempt_index)
                   and c.open_waitpoints = 0 and not c.stream_open)
        returning x.n, c.execution_id, c.limited, c.flow_id
    )
    select coalesce(array_agg(d.execution_id order by d.n), '{}'), bool_or(d.limited),
           coalesce(bool_or(d.flow_id is not null), false)
      into v_ids, v_limited, v_members
      from ended d;
    v_events := ff__emit_executions(v_ids, a.lease_event, a.lease_reason, p_outcome, p_reason, p_now_ms,
                                    v_members);
    delete from ff_claim_grant g where g.execution_id = any (v_ids);
    if v_limited then
        perform ff__free_slots(v_ids, p_now_ms, a.lease_event is not null, true);
    end if;
    if v_members then
        perform ff__members_ended(v_events.ids, v_events.event_ids, p_outcome, p_now_ms, p_defer_ends);
    end if;
    if p_outcome <> 'success' then
        perform ff__parents_ended(v_ids, p_defer_ends);
    end if;
    return v_ids;
end
$$;

-- ff__end for one execution that was opened. Returns the public state.
create or replace function ff__terminate(
    e ff_exec, a ff_ending, p_outcome text, p_reason text default null, p_category text default null, p_by text default null,
    p_result bytea default null, p_result_encoding text default null
) returns text
language plpgsql volatile
as $$
begin
    perform ff__end(array[(e.execution_id, null, null, null, null, null)::ff_fence], a, p_outcome, e.now_ms, p_reason,
                    p_category, p_by, array[p_result], p_result_encoding, e.defer_ends);
    return case p_outcome when 'success' then 'completed' else p_outcome end;
end
$$;
