-- The steps of maintenance as people look at them, with what they fail on. A step that never ran is idle since the
-- functions were applied: before, it did not exist.
create or replace view ff_v_maintenance as
select r.name,
       r.run_order,
       r.enabled,
       make_interval(secs => r.interval_ms / 1000::float8) as run_interval,
       to_timestamp(r.last_run_at_ms / 1000::float8) as last_run_at,
       to_timestamp(greatest(r.last_run_at_ms, s.applied_at_ms) / 1000::float8) as idle_since,
       r.last_processed,
       r.last_errors,
       r.more,
       x.failing_rows,
       x.example_error
  from ff_reconciler r
 cross join ff_schema_state s
 cross join lateral (
        select count(*) as failing_rows, min(e.last_error) as example_error
          from ff_reconciler_error e
         where e.name = r.name) x;

comment on view ff_v_maintenance is
$$The steps of maintenance: whether they run, when they last did, what they fail on. One row each.
Fast: always, there are few.$$;
comment on column ff_v_maintenance.name is 'The step, as ff_tick and ff_set_reconciler know it.';
comment on column ff_v_maintenance.run_order is 'Its place among the steps of one tick.';
comment on column ff_v_maintenance.enabled is 'It has not been switched off.';
comment on column ff_v_maintenance.run_interval is 'How much time passes between two runs, at least.';
comment on column ff_v_maintenance.last_run_at is 'When it last ran; NULL: never.';
comment on column ff_v_maintenance.idle_since is 'The same; for one that never ran, since when it could have.';
comment on column ff_v_maintenance.last_processed is 'How many rows the last run dealt with.';
comment on column ff_v_maintenance.last_errors is 'On how many it failed.';
comment on column ff_v_maintenance.more is 'The last run left due rows to the next one.';
comment on column ff_v_maintenance.failing_rows is 'How many rows it could not process, and will try again.';
comment on column ff_v_maintenance.example_error is 'What one of them fails with.';
