-- Flows: graphs of executions, the work list of their dispatch, the backlog of their cancellation.

set local lock_timeout = '10s';

-- Dispatch decrements live_members on every end of a member: it is in no index and no generated column, so that this is
-- a HOT update that evaluates no expression.
create table ff_flow_core (
    flow_id             uuid     not null primary key,
    graph_revision      bigint   not null default 0,
    created_at_ms       bigint   not null,
    last_mutation_at_ms bigint   not null,
    terminal_at_ms      bigint,
    last_event_ord      bigint   not null default 0,
    node_count          int      not null default 0,
    edge_count          int      not null default 0,
    live_members        int      not null default 0,
    forced_acks         int      not null default 0,
    unsuccessful        boolean  not null default false,
    partition_key       smallint not null,
    public_flow_state   text collate "C" not null
        check (public_flow_state in ('building', 'open', 'completed', 'failed', 'cancelled')),
    cancellation_policy text collate "C"
        check (cancellation_policy in ('cancel_all', 'cancel_pending', 'cancel_flow_only')),
    claimable           boolean  not null generated always as (
        public_flow_state <> 'building'
        and not (public_flow_state = 'cancelled' and cancellation_policy <> 'cancel_flow_only')) stored,
    flow_kind           text     not null,
    namespace           text collate "C" not null,
    cancel_reason       text,
    cancelled_by        text,
    quota_policy_id     text collate "C",
    budget_ids          text[],
    tags                jsonb    not null default '{}'
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
comment on table ff_flow_core is
    'One row per flow: a graph of executions, its counts and its state. Its row is the lock of the graph. Read it '
    'through ff_describe_flow.';
comment on column ff_flow_core.flow_id is 'The id of the flow.';
comment on column ff_flow_core.graph_revision is 'How many members and edges were added.';
comment on column ff_flow_core.created_at_ms is 'When it was created (Unix time in ms).';
comment on column ff_flow_core.last_mutation_at_ms is 'When the row was last changed (Unix time in ms).';
comment on column ff_flow_core.terminal_at_ms is
    'When it ended or was cancelled (Unix time in ms); NULL: it is open. A new live member reopens a completed or '
    'failed flow.';
comment on column ff_flow_core.last_event_ord is
    'The ord of its last event in ff_event_log; its next event has this one or a greater one.';
comment on column ff_flow_core.node_count is 'How many members it has.';
comment on column ff_flow_core.edge_count is 'How many edges it has, in any state.';
comment on column ff_flow_core.live_members is 'How many members have not ended, or whose end is not dispatched yet.';
comment on column ff_flow_core.forced_acks is
    'How many members ff_ack_cancel_member took off the backlog before they had ended, since the cancellation.';
comment on column ff_flow_core.unsuccessful is
    'Whether retention_failed_ms applies, not retention_ms: a member without a retention of its own ended failed, '
    'cancelled or expired; or the flow was cancelled and has no members, or live ones.';
comment on column ff_flow_core.partition_key is
    'The number in the ids of its members, 0 to 255: the last byte of flow_id.';
comment on column ff_flow_core.public_flow_state is 'building, open, completed, failed or cancelled.';
comment on column ff_flow_core.cancellation_policy is
    'What the cancellation does with members: cancel_all, cancel_pending or cancel_flow_only; NULL: not '
    'cancelled.';
comment on column ff_flow_core.claimable is
    'Whether members may be claimed; computed from public_flow_state and cancellation_policy.';
comment on column ff_flow_core.flow_kind is 'The kind of flow, as named by the submitter.';
comment on column ff_flow_core.namespace is 'The namespace of the flow.';
comment on column ff_flow_core.cancel_reason is 'Why it was cancelled, as given by the caller; NULL: it was not.';
comment on column ff_flow_core.cancelled_by is 'Who cancelled it, as given by the caller; NULL: it was not.';
comment on column ff_flow_core.quota_policy_id is 'The quota policy that new members get; NULL: none.';
comment on column ff_flow_core.budget_ids is 'The budgets that new members get; NULL: none.';
comment on column ff_flow_core.tags is 'An object of texts by key.';
create index ff_flow_core_terminal on ff_flow_core (unsuccessful, terminal_at_ms) where terminal_at_ms is not null;
create index ff_flow_core_building on ff_flow_core (created_at_ms) where public_flow_state = 'building';
create index ff_flow_core_empty on ff_flow_core (created_at_ms) where node_count = 0;

-- The indexes on upstream and downstream do not begin with flow_id, and look-ups by them do not name the flow: without
-- statistics on large flows, the planner would choose any index that begins with flow_id.
create table ff_edge (
    flow_id          uuid   not null,
    edge_id          uuid   not null,
    upstream_eid     uuid   not null,
    downstream_eid   uuid   not null,
    created_at_ms    bigint not null,
    applied_at_ms    bigint,
    resolved_at_ms   bigint,
    reopened_at_ms   bigint,
    dependency_kind  text collate "C" not null check (dependency_kind in ('success_only', 'any_terminal')),
    edge_state       text collate "C" not null
        check (edge_state in ('staged', 'applied', 'satisfied', 'failed', 'skipped')),
    upstream_outcome text collate "C"
        check (upstream_outcome in ('success', 'failed', 'cancelled', 'expired', 'skipped')),
    data_passing_ref text,
    primary key (flow_id, edge_id),
    constraint ff_edge_pair unique (upstream_eid, downstream_eid)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
comment on table ff_edge is
    'Dependencies between members of a flow: the downstream waits for the upstream. Written under the lock of the '
    'flow''s row.';
comment on column ff_edge.flow_id is 'The flow.';
comment on column ff_edge.edge_id is 'The id of the edge.';
comment on column ff_edge.upstream_eid is 'The member that is waited for.';
comment on column ff_edge.downstream_eid is 'The member that waits.';
comment on column ff_edge.created_at_ms is 'When it was staged (Unix time in ms).';
comment on column ff_edge.applied_at_ms is
    'When it was applied (Unix time in ms): the downstream waits from then on. NULL: staged.';
comment on column ff_edge.resolved_at_ms is
    'When the end of the upstream was dispatched to it (Unix time in ms); NULL: not yet.';
comment on column ff_edge.reopened_at_ms is
    'When a replay made it wait for another end of an upstream that had ended (Unix time in ms); NULL otherwise.';
comment on column ff_edge.dependency_kind is 'success_only: satisfied by success; any_terminal: by any end.';
comment on column ff_edge.edge_state is 'staged, applied, satisfied, failed or skipped.';
comment on column ff_edge.upstream_outcome is 'How the upstream ended; NULL: not resolved.';
comment on column ff_edge.data_passing_ref is
    'A text for the downstream, returned by ff_read_dependency_inputs; NULL: none.';
create index ff_edge_downstream on ff_edge (downstream_eid);

create table ff_edge_group (
    flow_id        uuid   not null,
    downstream_eid uuid   not null,
    decided_at_ms  bigint,
    k              int,
    n_edges        int    not null default 0,
    n_success      int    not null default 0,
    n_failed       int    not null default 0,
    n_skipped      int    not null default 0,
    policy_kind    text collate "C" not null check (policy_kind in ('all_of', 'any_of', 'quorum')),
    on_satisfied   text collate "C" check (on_satisfied in ('cancel_remaining', 'let_run')),
    group_state    text collate "C" not null
        check (group_state in ('pending', 'satisfied', 'impossible', 'cancelled')),
    primary key (flow_id, downstream_eid)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
comment on table ff_edge_group is
    'What a member waits for: how many of its incoming edges must succeed, their counts by state, and the decision.';
comment on column ff_edge_group.flow_id is 'The flow.';
comment on column ff_edge_group.downstream_eid is 'The member that waits.';
comment on column ff_edge_group.decided_at_ms is 'When group_state was decided (Unix time in ms); NULL: pending.';
comment on column ff_edge_group.k is 'How many edges must be satisfied for quorum; NULL for other policies.';
comment on column ff_edge_group.n_edges is 'How many edges are applied or resolved.';
comment on column ff_edge_group.n_success is 'How many of them are satisfied.';
comment on column ff_edge_group.n_failed is 'How many of them failed.';
comment on column ff_edge_group.n_skipped is 'How many of them are skipped.';
comment on column ff_edge_group.policy_kind is 'all_of, any_of or quorum (k of them).';
comment on column ff_edge_group.on_satisfied is
    'What happens to the other upstreams after the decision: cancel_remaining or let_run; NULL: all_of.';
comment on column ff_edge_group.group_state is
    'pending, satisfied, impossible, or cancelled: the member ended before the decision.';

create table ff_flow_dispatch (
    event_id            bigint  not null primary key,
    flow_id             uuid    not null,
    execution_id        uuid    not null,
    created_at_ms       bigint  not null,
    next_dispatch_at_ms bigint  not null,
    dispatch_attempts   int     not null default 0,
    counted             boolean not null default false,
    outcome             text collate "C" not null
        check (outcome in ('success', 'failed', 'cancelled', 'expired', 'skipped'))
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
comment on table ff_flow_dispatch is
    'Work list: ended members whose end has not been dispatched to their dependents yet. Usually empty.';
comment on column ff_flow_dispatch.event_id is
    'The id of the completion event of the member; taken from the sequence also if that event is muted.';
comment on column ff_flow_dispatch.flow_id is 'The flow.';
comment on column ff_flow_dispatch.execution_id is 'The member that ended.';
comment on column ff_flow_dispatch.created_at_ms is 'When it ended (Unix time in ms).';
comment on column ff_flow_dispatch.next_dispatch_at_ms is 'When it is tried next (Unix time in ms).';
comment on column ff_flow_dispatch.dispatch_attempts is
    'How often a dispatch left some of its dependents for later, because they were locked.';
comment on column ff_flow_dispatch.counted is 'Whether the end is subtracted from ff_flow_core.live_members.';
comment on column ff_flow_dispatch.outcome is 'How it ended.';
create index ff_flow_dispatch_flow on ff_flow_dispatch (flow_id, counted, event_id);
create index ff_flow_dispatch_put_off on ff_flow_dispatch (flow_id, next_dispatch_at_ms) where counted;
create index ff_flow_dispatch_due on ff_flow_dispatch (next_dispatch_at_ms);

create table ff_cancel_dispatch_outbox (
    target_eid     uuid   not null,
    downstream_eid uuid   not null,
    flow_id        uuid   not null,
    enqueued_at_ms bigint not null,
    reason         text   not null,
    primary key (target_eid, downstream_eid)
);
comment on table ff_cancel_dispatch_outbox is
    'Members still to be cancelled: not needed by a decided group, and locked by another transaction at the decision.';
comment on column ff_cancel_dispatch_outbox.target_eid is 'The member to be cancelled.';
comment on column ff_cancel_dispatch_outbox.downstream_eid is 'The member whose decided group makes it unnecessary.';
comment on column ff_cancel_dispatch_outbox.flow_id is 'The flow.';
comment on column ff_cancel_dispatch_outbox.enqueued_at_ms is 'When it was found locked (Unix time in ms).';
comment on column ff_cancel_dispatch_outbox.reason is 'The cancellation_reason that it gets.';
create index ff_cancel_dispatch_outbox_enqueued on ff_cancel_dispatch_outbox (enqueued_at_ms);

create table ff_cancel_backlog (
    flow_id             uuid   not null primary key,
    requested_at_ms     bigint not null,
    grace_until_ms      bigint not null,
    requester           text   not null,
    reason              text   not null,
    cancellation_policy text collate "C" not null
        check (cancellation_policy in ('cancel_all', 'cancel_pending', 'cancel_flow_only'))
);
comment on table ff_cancel_backlog is
    'Cancelled flows with members that have not ended yet, and the time from which the engine ends them.';
comment on column ff_cancel_backlog.flow_id is 'The cancelled flow.';
comment on column ff_cancel_backlog.requested_at_ms is 'When it was cancelled (Unix time in ms).';
comment on column ff_cancel_backlog.grace_until_ms is
    'When the engine ends the remaining members (Unix time in ms); later if members were locked then.';
comment on column ff_cancel_backlog.requester is 'Who cancelled it, as given by the caller.';
comment on column ff_cancel_backlog.reason is 'Why it was cancelled, as given by the caller.';
comment on column ff_cancel_backlog.cancellation_policy is 'Which members are ended: cancel_all or cancel_pending.';
create index ff_cancel_backlog_grace on ff_cancel_backlog (grace_until_ms);

create table ff_cancel_backlog_member (
    flow_id      uuid not null,
    execution_id uuid not null,
    primary key (flow_id, execution_id)
);
comment on table ff_cancel_backlog_member is
    'The members of a cancelled flow that have not ended yet.';
comment on column ff_cancel_backlog_member.flow_id is 'The cancelled flow.';
comment on column ff_cancel_backlog_member.execution_id is 'The member.';

create table ff_flow_summary (
    flow_id                  uuid   not null primary key,
    projected_at_ms          bigint not null,
    total_members            int    not null,
    members_waiting          int    not null,
    members_delayed          int    not null,
    members_rate_limited     int    not null,
    members_waiting_children int    not null,
    members_active           int    not null,
    members_suspended        int    not null,
    members_resumable        int    not null,
    members_completed        int    not null,
    members_failed           int    not null,
    members_cancelled        int    not null,
    members_expired          int    not null,
    members_skipped          int    not null,
    derived_state            text collate "C" not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
comment on table ff_flow_summary is
    'The last projection of each flow: its derived state and how many members are in which state.';
comment on column ff_flow_summary.flow_id is 'The flow.';
comment on column ff_flow_summary.projected_at_ms is 'When the members were counted (Unix time in ms).';
comment on column ff_flow_summary.total_members is 'How many members it had.';
comment on column ff_flow_summary.members_waiting is 'How many waited for a worker.';
comment on column ff_flow_summary.members_delayed is 'How many waited for a time.';
comment on column ff_flow_summary.members_rate_limited is 'How many waited for admission.';
comment on column ff_flow_summary.members_waiting_children is 'How many waited for other members.';
comment on column ff_flow_summary.members_active is 'How many ran.';
comment on column ff_flow_summary.members_suspended is 'How many were suspended.';
comment on column ff_flow_summary.members_resumable is 'How many could be resumed by a claim.';
comment on column ff_flow_summary.members_completed is 'How many had succeeded.';
comment on column ff_flow_summary.members_failed is 'How many had failed.';
comment on column ff_flow_summary.members_cancelled is 'How many had been cancelled.';
comment on column ff_flow_summary.members_expired is 'How many had expired.';
comment on column ff_flow_summary.members_skipped is 'How many had been skipped.';
comment on column ff_flow_summary.derived_state is
    'open, running, blocked, completed or failed, derived from the counts.';
create index ff_flow_summary_projected on ff_flow_summary (projected_at_ms);

create type ff_dispatched as (
    rows_done          int,
    edges_resolved     int,
    children_released  int,
    children_skipped   int,
    siblings_cancelled int,
    depth              int,
    rows_left          boolean
);
comment on type ff_dispatched is 'The remaining work of one round of dispatch. Internal.';
