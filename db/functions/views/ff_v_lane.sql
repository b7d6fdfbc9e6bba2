-- Lanes, for dashboards and ad hoc queries.
create or replace view ff_v_lane as
select l.lane_id,
       l.state,
       l.state_reason,
       to_timestamp(l.state_changed_at_ms / 1000::float8) as state_changed_at,
       to_timestamp(l.registered_at_ms / 1000::float8) as registered_at,
       l.registered_by
  from ff_lane_registry l;

comment on view ff_v_lane is
$$Lanes and their state. One row each; ff_v_lane_stats counts their executions.
Fast: lane_id = ..$$;
comment on column ff_v_lane.lane_id is 'The name of the lane.';
comment on column ff_v_lane.state is
    'active accepts submissions and claims, paused only submissions, draining only claims, disabled neither.';
comment on column ff_v_lane.state_reason is 'Why it is in this state.';
comment on column ff_v_lane.state_changed_at is 'When its state last changed.';
comment on column ff_v_lane.registered_at is 'When it was first used.';
comment on column ff_v_lane.registered_by is 'What first used it.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
