-- Quota policies as people look at them. How full a policy is takes counting: ff_read_quota_policy_limits does that.
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
$$Quota policies: how many may start in a window, how many may run at once. One row each; ff_read_quota_policy_limits says
how full one is.
Fast: quota_policy_id = ..$$;
comment on column ff_v_quota.quota_policy_id is 'The name of the policy.';
comment on column ff_v_quota.max_requests_per_window is 'How many may start in any window of that length; 0: no limit.';
comment on column ff_v_quota.window_seconds is 'The length of the window.';
comment on column ff_v_quota.max_concurrent is 'How many may run at once; 0: no limit.';
comment on column ff_v_quota.jitter_seconds is 'How far apart those that wait are spread.';
comment on column ff_v_quota.created_at is 'When it was made.';
comment on column ff_v_quota.updated_at is 'When it was last changed.';
