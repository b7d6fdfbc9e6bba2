-- Flows, for dashboards and ad hoc queries. The counts per state are those of the last projection
-- (ff_project_flow_summary).
create or replace view ff_v_flow as
select f.flow_id,
       f.namespace,
       f.flow_kind,
       f.public_flow_state,
       f.claimable,
       to_timestamp(f.created_at_ms / 1000::float8) as created_at,
       to_timestamp(f.terminal_at_ms / 1000::float8) as terminal_at,
       to_timestamp(f.last_mutation_at_ms / 1000::float8) as last_mutation_at,
       f.graph_revision,
       f.node_count,
       f.edge_count,
       f.live_members,
       f.cancellation_policy,
       f.cancel_reason,
       f.cancelled_by,
       f.quota_policy_id,
       f.budget_ids,
       f.tags,
       to_timestamp(s.projected_at_ms / 1000::float8) as projected_at,
       s.derived_state,
       s.members_waiting,
       s.members_delayed,
       s.members_rate_limited,
       s.members_waiting_children,
       s.members_active,
       s.members_suspended,
       s.members_resumable,
       s.members_completed,
       s.members_failed,
       s.members_cancelled,
       s.members_expired,
       s.members_skipped
  from ff_flow_core f
  left join ff_flow_summary s on s.flow_id = f.flow_id;

comment on view ff_v_flow is
$$Flows: state, size of the graph, and members per state when last counted. One row each.
Fast: flow_id = .., order by flow_id desc limit ..$$;
comment on column ff_v_flow.flow_id is 'The id of the flow. Ids made by the engine are in the order of time.';
comment on column ff_v_flow.namespace is 'Its namespace.';
comment on column ff_v_flow.flow_kind is 'The kind of flow, as named by the submitter.';
comment on column ff_v_flow.public_flow_state is 'building, open, completed, failed or cancelled.';
comment on column ff_v_flow.claimable is 'Whether its members may be claimed.';
comment on column ff_v_flow.created_at is 'When it was created. To page by it, order by flow_id.';
comment on column ff_v_flow.terminal_at is 'When it ended.';
comment on column ff_v_flow.last_mutation_at is 'When it last changed.';
comment on column ff_v_flow.graph_revision is 'How often its graph was changed.';
comment on column ff_v_flow.node_count is 'How many members it has.';
comment on column ff_v_flow.edge_count is 'How many dependencies are between them.';
comment on column ff_v_flow.live_members is 'How many members have not ended.';
comment on column ff_v_flow.cancellation_policy is 'How it was cancelled.';
comment on column ff_v_flow.cancel_reason is 'Why it was cancelled.';
comment on column ff_v_flow.cancelled_by is 'Who cancelled it.';
comment on column ff_v_flow.quota_policy_id is 'The quota policy of its members.';
comment on column ff_v_flow.budget_ids is 'The budgets of its members.';
comment on column ff_v_flow.tags is 'Its tags.';
comment on column ff_v_flow.projected_at is 'When the columns that follow were counted; NULL: never.';
comment on column ff_v_flow.derived_state is 'The state derived from its members.';
comment on column ff_v_flow.members_waiting is 'Members that wait for a worker.';
comment on column ff_v_flow.members_delayed is 'Members that wait for a time.';
comment on column ff_v_flow.members_rate_limited is 'Members that wait for admission.';
comment on column ff_v_flow.members_waiting_children is 'Members that wait for other members.';
comment on column ff_v_flow.members_active is 'Members that run.';
comment on column ff_v_flow.members_suspended is 'Members that wait for a signal.';
comment on column ff_v_flow.members_resumable is 'Members that can be resumed.';
comment on column ff_v_flow.members_completed is 'Members that succeeded.';
comment on column ff_v_flow.members_failed is 'Members that failed.';
comment on column ff_v_flow.members_cancelled is 'Members that were cancelled.';
comment on column ff_v_flow.members_expired is 'Members that expired.';
comment on column ff_v_flow.members_skipped is 'Members that were skipped.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
