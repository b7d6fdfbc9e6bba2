-- Children: executions that end with the execution that created them.

set local lock_timeout = '10s';

-- A separate table: an execution without a parent has no row, column or index entry. A row is deleted with its child.
create table ff_child (
    child_id      uuid    not null primary key,
    parent_id     uuid    not null,
    created_at_ms bigint  not null,
    detached      boolean not null
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);
comment on table ff_child is
    'Executions that were created with a parent. Unless detached, they are cancelled when it ends other than by '
    'success. Read it with ff_list_children.';
comment on column ff_child.child_id is 'The child.';
comment on column ff_child.parent_id is 'Its parent, which may have been deleted by retention.';
comment on column ff_child.created_at_ms is
    'When the child was created (Unix time in ms), for lists in the order of creation.';
comment on column ff_child.detached is 'Whether the child is independent of the end and the replay of its parent.';
create index ff_child_parent on ff_child (parent_id, created_at_ms, child_id);

-- Creating a child locks the row of its parent FOR KEY SHARE: the parent is not deleted while the creating transaction
-- is open, but its lease can be renewed, and it can end without seeing the child. So each transaction that makes an
-- attached child live (create, replay) adds a check of its parent, and maintenance checks again once that is committed.
create table ff_child_work (
    parent_id uuid   not null,
    work_id   bigint not null generated always as identity primary key,
    child_id  uuid,
    action    text collate "C" not null check (action in ('check', 'cancel', 'replay')),
    constraint ff_child_work_child check ((action = 'check') = (child_id is null))
) with (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
comment on table ff_child_work is
    'Work list: parents to compare with their children, and children to cancel or to replay with their parent. Usually '
    'empty.';
comment on column ff_child_work.work_id is 'The order of the work.';
comment on column ff_child_work.parent_id is 'The parent.';
comment on column ff_child_work.child_id is 'The child to cancel or to replay; NULL for a check.';
comment on column ff_child_work.action is
    'check: cancel the children if the parent has ended other than by success; cancel, replay: one child.';
create index ff_child_work_parent on ff_child_work (parent_id, work_id);
