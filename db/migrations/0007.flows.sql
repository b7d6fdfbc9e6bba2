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
-- unsuccessful: for retention, see 0009.
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
create index ff_cancel_backlog_grace on ff_cancel_backlog (grace_until_ms);

create table ff_cancel_backlog_member (
    flow_id      uuid not null,
    execution_id uuid not null,
    primary key (flow_id, execution_id)
);
comment on table ff_cancel_backlog_member is
    'The members of a cancelled flow that have not ended yet.';

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
create index ff_flow_summary_projected on ff_flow_summary (projected_at_ms);

-- The remaining work of one round of dispatch. Internal.
create type ff_dispatched as (
    rows_done          int,
    edges_resolved     int,
    children_released  int,
    children_skipped   int,
    siblings_cancelled int,
    depth              int,
    rows_left          boolean
);
