-- Executions, flows, schedules and steps that wait for an action or are overdue. Each kind reads the index of its rows,
-- oldest first, at most 100 of a kind; shared causes (a lane, a set of capabilities, a quota, a budget, a hold) are one
-- row with a count, which stops at 10000 where counting would read a whole lane.
-- The clock is a row of the FROM list: ff_now_ms() in a condition would prevent the use of indexes.
-- Calls in what_to_do can be run as they are. In the branches it is a format: %1$L is the execution, %2$L the flow.
create or replace view ff_v_stuck as
with clock as materialized (
    select @extschema@.ff_now_ms() as ms
), ready as materialized (
    -- The head of each lane and capability set, limited or not, of all namespaces.
    select distinct on (q.lane_id, q.caps_key) q.lane_id, l.state as lane_state, l.state_reason, l.state_changed_at_ms,
           x.execution_id, x.since_ms, q.required_capabilities as capabilities,
           least(sum(y.waiting) over (partition by q.lane_id, q.caps_key), 10000)::bigint as waiting
      from ff_queue q
      join ff_lane_registry l on l.lane_id = q.lane_id
     cross join (values (1), (-1)) s(sign) -- see ff__ready_queue
     cross join lateral (
            select c.execution_id, c.rank, c.last_transition_at_ms as since_ms
              from ff_execution c
             where c.ready_in = q.queue_id * s.sign
             order by c.rank limit 1) x
     cross join lateral (
            select count(*) as waiting
              from (select from ff_execution c where c.ready_in = q.queue_id * s.sign limit 10000) z) y
     order by q.lane_id, q.caps_key, x.rank
), stopped as (
    select l.lane_id,
           replace(format('ff_set_lane_state(%L, ''active'') when the reason is gone', l.lane_id), '%', '%%')
               as what_to_do
      from ff_lane_registry l
     where l.state in ('paused', 'disabled')
), parked as materialized (
    -- One scan for three kinds, skipped unless one of them is selected.
    select w.place, c.lane_id, c.quota_policy_id, c.budget_ids, count(*) as waiting,
           min(c.execution_id::text) as execution_id, min(c.last_transition_at_ms) as since_ms,
           coalesce(': ' || min(c.blocking_detail), '') as detail
      from (select x.state, x.lane_id, x.quota_policy_id, x.budget_ids, x.execution_id, x.last_transition_at_ms,
                   x.blocking_detail
              from ff_execution x
             where x.limited and x.terminal_at_ms is null and x.state between 'quota' and 'budget_resume'
             union all
            select x.state, x.lane_id, x.quota_policy_id, x.budget_ids, x.execution_id, x.last_transition_at_ms,
                   x.blocking_detail
              from ff_execution x
             where x.state between 'held' and 'held_resume') c
      join ff_state_word w on w.state = c.state
     group by w.place, c.lane_id, c.quota_policy_id, c.budget_ids
), found (kind, lane_id, execution_id, flow_id, waiting, since_ms, waits_for, what_to_do) as (
    select 'lane_stopped', r.lane_id, min(r.execution_id::text)::uuid, null::uuid, sum(r.waiting)::bigint,
           min(r.state_changed_at_ms),
           'lane ' || r.lane_id || ', which is ' || min(r.lane_state) || coalesce(': ' || min(r.state_reason), ''),
           x.what_to_do
      from ready r
      join stopped x on x.lane_id = r.lane_id
     group by r.lane_id, x.what_to_do
    union all
    select case when w.any_worker then 'no_capable_worker' else 'no_worker' end, r.lane_id, r.execution_id, null,
           r.waiting, r.since_ms,
           case when r.capabilities = '{}' then 'any worker on this lane'
                else 'a worker with ' || array_to_string(r.capabilities, ', ') end,
           'start a worker for this lane with these capabilities; workers that do not register are not known here'
      from ready r
     cross join clock t
     cross join lateral (
            select coalesce(bool_or(true), false) as any_worker,
                   coalesce(bool_or(w.capabilities @> r.capabilities), false) as capable
              from ff_worker_registry w
             where w.lanes @> array[r.lane_id] and w.last_heartbeat_ms + w.liveness_ttl_ms > t.ms) w
     where r.lane_state in ('active', 'draining') and not w.capable and r.since_ms <= t.ms - 60000
    union all
    select 'backlog', r.lane_id, r.execution_id, null, r.waiting, r.since_ms,
           'its turn: the workers of this lane are busy',
           'start more workers, or look at what they are doing in ff_v_execution'
      from ready r
     cross join clock t
     where r.lane_state in ('active', 'draining') and r.since_ms <= t.ms - 600000
       and exists (select from ff_worker_registry w
                    where w.lanes @> array[r.lane_id] and w.capabilities @> r.capabilities
                      and w.last_heartbeat_ms + w.liveness_ttl_ms > t.ms)
    union all
    select case c.state when 'leased' then 'lease_lapsed' else 'delay_over' end, c.lane_id, c.execution_id,
           c.flow_id, 1, c.since_ms,
           'a claim on this lane: ' || case c.state
               when 'leased' then c.worker_instance_id || ' let its lease run out' else 'its delay is over' end,
           coalesce(x.what_to_do, 'start a worker for this lane, or ff_tick()')
      from clock t
     cross join ff_lane_registry l
      left join stopped x on x.lane_id = l.lane_id
     cross join lateral (
            select c.state, c.lane_id, c.execution_id, c.flow_id, c.worker_instance_id, c.since_ms
              from ff_queue q
             cross join lateral (
                    select c.state, c.lane_id, c.execution_id, c.flow_id, c.worker_instance_id, c.due_at_ms,
                           case c.state when 'leased' then c.lease_expires_at_ms else c.delay_until_ms end as since_ms
                      from ff_execution c
                     where c.queue_id = q.queue_id and c.due_at_ms <= t.ms - 60000
                       and case c.state when 'leased' then c.lease_expires_at_ms else c.delay_until_ms end
                           <= t.ms - 60000
                     order by c.due_at_ms limit 100) c
             where q.lane_id = l.lane_id
             order by c.due_at_ms limit 100) c
    union all
    select 'retry_far_away', c.lane_id, c.execution_id, c.flow_id, 1, c.last_transition_at_ms,
           'its next attempt, in ' || make_interval(secs => (c.delay_until_ms - t.ms) / 1000)::text
               || coalesce(', after: ' || c.failure_reason, ''),
           'wait, or ff_cancel_execution(%1$L) and submit it again with another policy'
      from clock t
     cross join ff_lane_registry l
     cross join lateral (
            select c.lane_id, c.execution_id, c.flow_id, c.last_transition_at_ms, c.delay_until_ms, c.failure_reason
              from ff_queue q
             cross join lateral (
                    select c.lane_id, c.execution_id, c.flow_id, c.last_transition_at_ms, c.delay_until_ms,
                           c.failure_reason
                      from ff_execution c
                     where c.queue_id = q.queue_id and c.due_at_ms > t.ms + 3600000 and c.due_at_ms < 253402300799999
                       and c.state = 'backoff_retry'
                     order by c.due_at_ms desc limit 100) c
             where q.lane_id = l.lane_id
             order by c.delay_until_ms desc limit 100) c
    union all
    -- put_off: a delay of at most five minutes whose reason was written as progress under the same lease.
    select 'put_off', c.lane_id, min(c.execution_id::text)::uuid, null, count(*), min(c.last_transition_at_ms),
           'a worker that can run it: ' || min(c.progress_message),
           'deploy code that can run it, or ff_cancel_execution(%1$L)'
      from clock t
     cross join ff_queue q
     cross join lateral (
            select c.lane_id, c.execution_id, c.last_transition_at_ms, c.progress_message, c.progress_updated_at_ms,
                   coalesce(c.attempt_resumed_at_ms, c.attempt_started_at_ms) as claimed_at_ms
              from ff_execution c
             where c.queue_id = q.queue_id and c.due_at_ms between t.ms - 3600000 and t.ms + 300000
               and c.state = 'delayed_resume'
             order by c.due_at_ms limit 1000) c
     where c.progress_message ~ '^put off [0-9]+ times: ' and c.progress_updated_at_ms >= c.claimed_at_ms
     group by c.lane_id, regexp_replace(c.progress_message, '^put off [0-9]+ times: ', '')
    union all
    select 'deadline_passed', c.lane_id, c.execution_id, c.flow_id, 1, c.since_ms,
           'maintenance to end it: its time is over',
           case when c.deadline_at_ms <= t.ms then 'ff_tick(), or ff_expire_execution(%1$L, ''execution_deadline'')'
                else 'ff_tick(), or ff_expire_execution(%1$L, ''attempt_timeout'')' end
      from clock t
     cross join lateral (
            select c.lane_id, c.execution_id, c.flow_id, c.deadline_at_ms,
                   least(c.deadline_at_ms, c.attempt_timeout_at_ms) as since_ms
              from ff_execution c
             where (c.deadline_at_ms is not null or c.attempt_timeout_at_ms is not null)
               and c.terminal_at_ms is null
               and least(c.deadline_at_ms, c.attempt_timeout_at_ms) <= t.ms - 60000
             order by least(c.deadline_at_ms, c.attempt_timeout_at_ms) limit 100) c
    union all
    select case when s.escalated_at_ms is null then 'suspended_for_ever' else 'escalated' end, c.lane_id,
           s.execution_id, c.flow_id, 1, coalesce(s.escalated_at_ms, s.suspended_at_ms),
           s.reason_code || coalesce(': ' || s.reason_detail, '') || ', without a timeout',
           'deliver the signal, ff_resume_execution(%1$L), or ff_cancel_execution(%1$L)'
      from clock t
     cross join lateral (
            select s.execution_id, s.suspended_at_ms, s.escalated_at_ms, s.reason_code, s.reason_detail
              from ff_suspension s
             where s.closed_at_ms is null and s.timeout_at_ms is null
               and (s.suspended_at_ms <= t.ms - 86400000 or s.escalated_at_ms is not null)
             order by s.suspended_at_ms, s.execution_id limit 100) s
      join ff_execution c on c.execution_id = s.execution_id
    union all
    select 'suspension_overdue', c.lane_id, s.execution_id, c.flow_id, 1, s.timeout_at_ms,
           'maintenance to end it: its timeout has passed', 'ff_tick(), or ff_expire_suspension(%1$L)'
      from clock t
     cross join lateral (
            select s.execution_id, s.timeout_at_ms
              from ff_suspension s
             where s.closed_at_ms is null and s.timeout_at_ms <= t.ms - 60000
             order by s.timeout_at_ms limit 100) s
      join ff_execution c on c.execution_id = s.execution_id
    union all
    select 'flow_not_started', null, null, f.flow_id, f.node_count, f.created_at_ms,
           'ff_start_flow: ' || f.node_count || ' members of ' || f.flow_kind || ' cannot be claimed before',
           'ff_start_flow(%2$L) when its graph is complete, or ff_cancel_flow(%2$L)'
      from clock t
     cross join lateral (
            select f.flow_id, f.node_count, f.created_at_ms, f.flow_kind
              from ff_flow_core f
             where f.public_flow_state = 'building' and f.created_at_ms <= t.ms - 3600000
             order by f.created_at_ms limit 100) f
    union all
    select 'not_dispatched', null, min(d.execution_id::text)::uuid, d.flow_id, count(*), min(d.created_at_ms),
           'the ends of members to be passed on to those that wait, tried ' || max(d.dispatch_attempts) || ' times',
           'ff_tick(), or ff_dispatch_completions()'
      from clock t
      join ff_flow_dispatch d on d.created_at_ms <= t.ms - 10000
     group by d.flow_id
    union all
    select 'cancel_unfinished', null, null, b.flow_id, m.members, b.requested_at_ms,
           'members that have not ended although the flow was cancelled: ' || b.reason,
           'ff_tick(), or ff_drain_cancel_backlog()'
      from clock t
      join ff_cancel_backlog b on b.grace_until_ms <= t.ms - 60000
     cross join lateral (
            select count(*) as members from ff_cancel_backlog_member m where m.flow_id = b.flow_id) m
    union all
    select 'parked_by_quota', p.lane_id, min(p.execution_id)::uuid, null, sum(p.waiting)::bigint, min(p.since_ms),
           'quota policy ' || coalesce(p.quota_policy_id, '?') || min(p.detail),
           'wait for its window, raise its limits, or detach it'
      from parked p
     where p.place = 'quota'
     group by p.lane_id, p.quota_policy_id
    union all
    select 'parked_by_budget', p.lane_id, min(p.execution_id)::uuid, null, sum(p.waiting)::bigint, min(p.since_ms),
           'a budget' || min(p.detail), 'wait for its reset, reset it, or raise its limits'
      from parked p
     where p.place = 'budget'
     group by p.lane_id, p.budget_ids
    union all
    select 'held_by_operator', p.lane_id, min(p.execution_id)::uuid, null, sum(p.waiting)::bigint, min(p.since_ms),
           'an operator' || min(p.detail), 'unblock it when the reason is gone, or cancel it'
      from parked p
     where p.place = 'held'
     group by p.lane_id
    union all
    select 'schedule_late', s.lane_id, null, null, 1, s.due_at_ms,
           'maintenance to fire schedule ' || s.schedule_id, 'ff_tick(), ff_fire_schedules(), or start a worker'
      from clock t
     cross join lateral (
            select s.lane_id, s.schedule_id, s.due_at_ms
              from ff_schedule s
             where s.due_at_ms <= t.ms - 60000 and s.error_count = 0
             order by s.due_at_ms limit 100) s
    union all
    select 'schedule_failing', s.lane_id, null, null, 1, s.next_fire_at_ms,
           'schedule ' || s.schedule_id || ', tried ' || s.error_count || ' times: ' || s.last_error,
           replace(format('remove what it says, or ff_pause_schedule(%L)', s.schedule_id), '%', '%%')
      from ff_schedule s
     where s.due_at_ms is not null and s.error_count > 0
    union all
    -- One row per step and kind of error: the row that has failed for the longest time.
    select 'maintenance_failed', null,
           case when x.name in ('sweep_expired_leases', 'sweep_attempt_timeouts', 'sweep_deadlines', 'sweep_delayed',
                                'sweep_suspensions', 'sweep_claim_grants', 'sweep_admissions')
                 and x.row_key ~ '^[0-9a-f-]{36}$' then x.row_key::uuid end,
           case when x.name in ('dispatch_completions', 'project_flows') and x.row_key ~ '^[0-9a-f-]{36}$'
                then x.row_key::uuid end,
           x.failed, x.since_ms,
           'ff_' || x.name || ', which fails ' || case x.row_key when '' then 'as a whole' else 'on ' || x.row_key end
               || ', ' || x.attempts || ' times so far: ' || x.last_error,
           'remove the cause: it is tried again by itself; all rows of it are in ff_reconciler_error'
      from (select distinct on (r.name, left(r.last_error, 5))
                   r.name, r.row_key, r.attempts, r.last_error,
                   coalesce(r.failing_since_ms, r.next_retry_at_ms) as since_ms,
                   count(*) over (partition by r.name, left(r.last_error, 5)) as failed
              from ff_reconciler_error r
             order by r.name, left(r.last_error, 5), coalesce(r.failing_since_ms, r.next_retry_at_ms), r.row_key) x
)
select f.kind,
       f.lane_id,
       w.execution_id,
       f.execution_id as execution_uuid,
       f.flow_id,
       f.waiting,
       to_timestamp(f.since_ms / 1000::float8) as since,
       make_interval(secs => greatest(t.ms - f.since_ms, 0) / 1000) as for_how_long,
       f.waits_for,
       format(f.what_to_do, w.execution_id, f.flow_id) as what_to_do
  from found f
 cross join clock t
 cross join lateral (
        select '{fp:' || get_byte(uuid_send(f.execution_id), 15)::text || '}:' || f.execution_id::text) w(execution_id);

comment on view ff_v_stuck is
$$What waits for an action or is overdue, for what, since when, and what to do. One row per cause or per execution, at
most the 100 oldest of a kind and lane. Empty in normal operation.

lane_stopped: ready work on a paused or disabled lane
no_worker: ready for a minute; no registered worker of the lane is alive
no_capable_worker: ready for a minute; no live worker has the capabilities
backlog: the head of the queue has waited for ten minutes although workers are alive
lease_lapsed, delay_over: due for a minute; no worker claims on the lane
retry_far_away: the next attempt is more than an hour away
put_off: the workers that claimed it cannot run it: no such task, a payload that does not decode, a missing import; one
row per reason and lane
deadline_passed: a deadline or attempt timeout passed a minute ago and was not applied
suspended_for_ever: suspended for a day, without a timeout
suspension_overdue: its timeout passed a minute ago and was not applied
escalated: its timeout passed, and an operator has to decide
parked_by_quota, parked_by_budget, held_by_operator: one row per cause and lane
flow_not_started: a flow that has been built for an hour
not_dispatched: members ended ten seconds ago; their dependents were not updated
cancel_unfinished: a cancelled flow whose grace is over and that has live members
schedule_late: a schedule that was due a minute ago and was not fired
schedule_failing: a schedule whose last firing failed
maintenance_failed: a step of maintenance fails, on rows or as a whole; one row per step and kind of error$$;
comment on column ff_v_stuck.kind is 'The kind of problem: one of the words in the comment of the view.';
comment on column ff_v_stuck.lane_id is 'The lane, if any.';
comment on column ff_v_stuck.execution_id is 'The execution, or one of the waiting executions.';
comment on column ff_v_stuck.execution_uuid is 'The uuid in execution_id.';
comment on column ff_v_stuck.flow_id is 'The flow, if any.';
comment on column ff_v_stuck.waiting is
    'How many executions (for maintenance: rows) wait for the same cause; ready work is counted up to 10000 per set '
    'of capabilities.';
comment on column ff_v_stuck.since is 'When the wait began.';
comment on column ff_v_stuck.for_how_long is 'The time since then.';
comment on column ff_v_stuck.waits_for is 'What it waits for.';
comment on column ff_v_stuck.what_to_do is 'What to do. Calls in it can be run as they are.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
