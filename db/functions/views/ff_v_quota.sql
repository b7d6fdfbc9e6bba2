-- Quota policies, for dashboards and ad hoc queries. Usage has to be counted: see ff_read_quota_policy_limits.
create or replace view ff_v_quota as
select q.quota_policy_id,
       q.max_requests_per_window,
       q.window_seconds,
       q.max_concurrent,
       q.jitter_ms / 1000::float8 as jitter_seconds,
       to_timestamp(q.created_at_ms / 1000::float8) as created_at,
       to_timestamp(q.updated_at_ms / 1000::float8) as updated_at
  from ff_quota_policy q;

comment on view ff_v_quota is
$$Quota policies: how many executions may start in a window and run at once. One row each; ff_read_quota_policy_limits
returns the usage of one.
Fast: quota_policy_id = ..$$;
comment on column ff_v_quota.quota_policy_id is 'The name of the policy.';
comment on column ff_v_quota.max_requests_per_window is
    'How many may start in any window of window_seconds; 0: no limit.';
comment on column ff_v_quota.window_seconds is 'The length of the window.';
comment on column ff_v_quota.max_concurrent is 'How many may run at once; 0: no limit.';
comment on column ff_v_quota.jitter_seconds is 'Maximum random delay added to retry_after_ms of denied starts.';
comment on column ff_v_quota.created_at is 'When it was created.';
comment on column ff_v_quota.updated_at is 'When it was last changed.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
