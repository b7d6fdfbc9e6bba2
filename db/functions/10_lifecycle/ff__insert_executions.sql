-- The one insert of executions. p_subs has what each was checked to be, in the same order as p_ids and p_payloads; those
-- with waiting true begin behind their edges. A member of a flow that is still being built is in no queue. Turns are drawn in the
-- order given: so they are handed out. Returns how many were made: an id that exists is left out.
create or replace function ff__insert_executions(
    p_ids uuid[], p_payloads bytea[], p_subs ff_submission[], p_now_ms bigint, p_flow_id uuid default null,
    p_building boolean default false, p_waiting boolean[] default null
) returns int
language plpgsql volatile
as $$
declare
    v_made int;
begin
    -- The id of the transaction is drawn before the turns.
    perform pg_current_xact_id();
    insert into ff_execution (
        execution_id, created_at_ms, last_transition_at_ms, last_mutation_at_ms, rank, queue_id, priority, state, partition_key,
        limited, lane_id, namespace, execution_kind, creator, ready_in, due_at_ms, payload, payload_encoding, flow_id,
        delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms, policy, tags, quota_policy_id, budget_ids)
    select x.id, p_now_ms, p_now_ms, p_now_ms, ff__rank(x.priority, nextval('ff_turn_seq')), x.queue_id, x.priority,
           case when x.waiting then 'children' else x.state end, ff__partition(x.id), x.limited, x.lane_id, x.namespace,
           x.execution_kind, x.creator,
           case when x.delay_until_ms is null and not p_building and x.waiting is not true then x.queue_id end,
           case when x.waiting is not true then x.delay_until_ms end, x.payload, x.payload_encoding, p_flow_id,
           x.delay_until_ms, x.deadline_at_ms, x.attempt_timeout_ms, x.retention_ms, x.policy, x.tags, x.quota_policy_id,
           x.budget_ids
      from unnest(p_ids, p_payloads, p_subs, p_waiting) x(
           id, payload, lane_id, namespace, execution_kind, creator, payload_encoding, policy, tags, required_capabilities,
           caps_key, priority, delay_until_ms, deadline_at_ms, attempt_timeout_ms, retention_ms, dedup_window_ms,
           quota_policy_id, budget_ids, limited, state, queue_id, waiting)
    on conflict do nothing;
    get diagnostics v_made = row_count;
    return v_made;
end
$$;
