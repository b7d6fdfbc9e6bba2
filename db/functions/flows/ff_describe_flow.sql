create or replace function ff_describe_flow(p_flow_id uuid)
returns table (
    flow_id uuid, flow_kind text, namespace text, graph_revision bigint, node_count int, edge_count int,
    live_members int, public_flow_state text, derived_state text, claimable boolean, cancellation_policy text,
    cancel_reason text, cancelled_by text, quota_policy_id text, budget_ids text[], tags jsonb, created_at_ms bigint,
    last_mutation_at_ms bigint, terminal_at_ms bigint,
    members_waiting int, members_delayed int, members_rate_limited int, members_waiting_children int, members_active
    int, members_suspended int, members_resumable int, members_completed int, members_failed int, members_cancelled
    int, members_expired int, members_skipped int, cancel_pending int
)
language plpgsql stable security definer rows 1
as $$
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    end if;
    return query
        select f.flow_id, f.flow_kind, f.namespace, f.graph_revision, f.node_count, f.edge_count, f.live_members,
               f.public_flow_state, s.derived_state, f.claimable, f.cancellation_policy, f.cancel_reason,
               f.cancelled_by, f.quota_policy_id, f.budget_ids, f.tags, f.created_at_ms, f.last_mutation_at_ms,
               f.terminal_at_ms,
               s.members_waiting, s.members_delayed, s.members_rate_limited, s.members_waiting_children,
               s.members_active, s.members_suspended, s.members_resumable, s.members_completed, s.members_failed,
               s.members_cancelled, s.members_expired, s.members_skipped,
               (select count(*)::int from ff_cancel_backlog_member m where m.flow_id = f.flow_id)
          from ff_flow_core f cross join lateral ff__flow_counts(f.flow_id) s
         where f.flow_id = p_flow_id;
end
$$;

comment on function ff_describe_flow(uuid) is
$$Describes one flow: stored columns, number of members by state, and the state derived from those counts
(derived_state). cancel_pending: members that its cancellation still waits for. No row: no such flow.

Rows: at most one
Outcomes: public_flow_state = building | open | completed | failed | cancelled
Outcomes: derived_state = open | running | blocked | completed | failed
Outcomes: cancellation_policy = cancel_all | cancel_pending | cancel_flow_only
Nullable: cancellation_policy, cancel_reason, cancelled_by, quota_policy_id, budget_ids, terminal_at_ms
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
