-- Locks: the tables whose rows emit events and the events themselves, in EXCLUSIVE mode; reads continue. Operations,
-- and transactions that combine several, do not all lock these tables in this order: in a conflict one of the two gets
-- 40P01.
-- Writes every row that can emit an event: a transaction with an older snapshot, which would still see the old
-- generation, gets 40001, except where it writes executions that it created itself. Not idempotent: each call starts a
-- generation.
create or replace function ff_rebase_events(out gen int, out system_identifier bigint)
language plpgsql volatile security definer
as $$
begin
    lock table ff_flow_core, ff_execution, ff_lane_registry, ff_worker_registry, ff_event_log in exclusive mode;
    update ff_flow_core f set last_event_ord = 0;
    update ff_execution c set last_event_ord = 0;
    update ff_lane_registry l set last_event_ord = 0;
    update ff_worker_registry w set last_event_ord = 0;
    update ff_queue q
       set start_rank = 0, settled_rank = 0, settled_xid = '3', start_due_ms = 0, settled_due_ms = 0; -- ff__move_start
    update ff_event_generation g set gen = g.gen + 1, system_identifier = s.system_identifier
      from pg_control_system() s where g.id
    returning g.gen, g.system_identifier into ff_rebase_events.gen, ff_rebase_events.system_identifier;
end
$$;

comment on function ff_rebase_events() is
$$Starts a new generation of the event order. Required once after a restore from a dump or a point-in-time recovery,
where transaction ids start again: existing events keep their places and come first, existing cursors stay valid. Run it
before other clients write to the restored database: concurrent writers, and this call, may get 40001 or 40P01. Until
then a database restored into another cluster rejects reads of events (event_generation_stale); after a point-in-time
recovery the need for this call is not detected: the operator must run it.$$;
-- grant: ff_admin
