-- The first ord that is not complete: every transaction that could still add an event below it has ended. Whoever reads
-- events asks this first, and reads with the same snapshot or a later one. Running write transactions hold it, in any
-- database of the cluster, prepared ones too.
create or replace function ff__event_horizon() returns bigint
language sql stable
as $$ select pg_snapshot_xmin(pg_current_snapshot())::text::bigint $$;
