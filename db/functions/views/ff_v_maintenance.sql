-- The steps of maintenance, for dashboards and ad hoc queries, with their failing rows. A step that never ran is idle
-- since the functions were applied.
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
$$The steps of maintenance: whether they are enabled, when they last ran, their failures. One row each.
Fast: always, there are few.$$;
comment on column ff_v_maintenance.name is 'The name of the step in ff_tick and ff_set_reconciler.';
comment on column ff_v_maintenance.run_order is 'Its position among the steps of one tick.';
comment on column ff_v_maintenance.enabled is 'Whether it is switched on.';
comment on column ff_v_maintenance.run_interval is 'The minimum time between two runs.';
comment on column ff_v_maintenance.last_run_at is 'When it last ran; NULL: never.';
comment on column ff_v_maintenance.idle_since is
    'last_run_at; for a step that never ran, when the functions were applied.';
comment on column ff_v_maintenance.last_processed is 'How many rows the last run processed.';
comment on column ff_v_maintenance.last_errors is 'How many rows failed in the last run.';
comment on column ff_v_maintenance.more is 'Whether the last run left due rows.';
comment on column ff_v_maintenance.failing_rows is 'How many rows failed and will be retried.';
comment on column ff_v_maintenance.example_error is 'The error of one of these rows.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
