-- Locks: the tables whose rows emit events and the events themselves, exclusively; reads go on. Operations do not all take
-- them in this order, still less transactions that string several together: where one meets this half-way, one of the two
-- gets 40P01.
-- Writes every row that can emit an event: a transaction with an older snapshot, which would still see the old generation,
-- gets 40001; only what it does to an execution that it has created itself escapes this. Not idempotent: each call starts a
-- generation.
create or replace function ff_rebase_events(out gen int, out system_identifier bigint)
language plpgsql volatile security definer
as $$
begin
    lock table ff_flow_core, ff_execution, ff_lane_registry, ff_worker_registry, ff_event in exclusive mode;
    update ff_flow_core f set last_event_ord = 0;
    update ff_execution c set last_event_ord = 0;
    update ff_lane_registry l set last_event_ord = 0;
    update ff_worker_registry w set last_event_ord = 0;
    update ff_event_generation g set gen = g.gen + 1, system_identifier = s.system_identifier
      from pg_control_system() s where g.id
    returning g.gen, g.system_identifier into ff_rebase_events.gen, ff_rebase_events.system_identifier;
    update ff_event_family f set gen = ff_rebase_events.gen;
end
$$;

comment on function ff_rebase_events() is
$$Starts a new generation of the event order. Needed once after a restore from a dump or a point-in-time recovery, where
transaction ids start again: events that were there keep their places and come first, cursors that readers have stay good.
Run it before anybody writes to the restored database: writers that it meets may get 40001 or 40P01, and so may
it. Until then a database restored into another cluster refuses to read events (event_generation_stale); after a
point-in-time recovery the operator has to know.$$;
