-- Rules of the execution lifecycle that must hold at every commit; each branch returns the rows that break some. Each
-- table is read once for all rules on the same rows, and the detail of a row is built only if it breaks a rule. Rules
-- that count events are checked only while nothing of that family was muted or trimmed.
create or replace function ff__invariants_executions() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    v_now bigint := ff__now_ms();
    v_completions boolean := exists (select from ff_event_family f
                                      where f.family = 'completion' and f.trimmed_event_id = 0
                                        and f.muted <@ '{renewed}'::text[]);
    v_leases boolean := exists (select from ff_event_family f
                                 where f.family = 'lease' and f.trimmed_event_id = 0
                                   and f.muted <@ '{renewed}'::text[]);
begin
    -- ff_state_word against the table of the contract (10.2).
    return query
    select v.rule, w.state::text,
           concat_ws(' / ', w.lifecycle_phase, w.ownership_state, w.eligibility_state, w.blocking_reason,
                     w.terminal_outcome,
                     w.attempt_state, w.public_state)
      from ff_state_word w
     cross join lateral (
           select w.attempt_state in ('pending_first_attempt', 'pending_retry_attempt', 'pending_replay_attempt',
                                      'attempt_interrupted') as waits,
                  (w.ownership_state, w.eligibility_state, w.terminal_outcome) = ('unowned', 'not_applicable', 'none')
                      as paused,
                  (w.eligibility_state, w.terminal_outcome) = ('not_applicable', 'none') as active) k
     cross join lateral (values
           ('legal_vector', coalesce(case w.lifecycle_phase
                when 'runnable' then
                    k.waits and w.ownership_state = 'unowned' and w.terminal_outcome = 'none'
                    and (w.eligibility_state, w.blocking_reason) in (
                        ('eligible_now', 'waiting_for_worker'), ('not_eligible_until_time', 'waiting_for_delay'),
                        ('not_eligible_until_time', 'waiting_for_retry_backoff'),
                        ('not_eligible_until_time', 'waiting_for_resume_delay'),
                        ('blocked_by_dependencies', 'waiting_for_children'),
                        ('blocked_by_budget', 'waiting_for_budget'),
                        ('blocked_by_quota', 'waiting_for_quota'), ('blocked_by_operator', 'paused_by_operator'))
                when 'active' then
                    k.active and (w.ownership_state, w.blocking_reason, w.attempt_state) in (
                        ('leased', 'none', 'running_attempt'),
                        ('lease_expired_reclaimable', 'waiting_for_worker', 'attempt_interrupted'),
                        ('lease_revoked', 'waiting_for_worker', 'attempt_interrupted'))
                when 'suspended' then
                    k.paused and w.attempt_state = 'attempt_interrupted'
                    and w.blocking_reason in ('waiting_for_signal', 'waiting_for_approval', 'waiting_for_callback',
                                              'waiting_for_tool_result', 'waiting_for_budget', 'paused_by_operator',
                                              'paused_by_policy')
                when 'terminal' then
                    (w.ownership_state, w.eligibility_state, w.blocking_reason, w.attempt_state)
                    = ('unowned', 'not_applicable', 'none', 'attempt_terminal')
                    and w.terminal_outcome in ('success', 'failed', 'cancelled', 'expired', 'skipped') end, false)),
           ('public_state', w.public_state is not distinct from case
                when w.terminal_outcome = 'success' then 'completed'
                when w.terminal_outcome <> 'none' then w.terminal_outcome
                when w.lifecycle_phase in ('active', 'suspended') then w.lifecycle_phase
                when w.eligibility_state = 'eligible_now'
                then case w.attempt_state when 'attempt_interrupted' then 'resumable' else 'waiting' end
                when w.eligibility_state = 'not_eligible_until_time' then 'delayed'
                when w.eligibility_state = 'blocked_by_dependencies' then 'waiting_children'
                when w.eligibility_state in ('blocked_by_quota', 'blocked_by_budget') then 'rate_limited'
                else 'waiting' end)) v(rule, holds)
     where not v.holds;

    -- Queues. The key of no capabilities is the empty text; ff__caps_key is not called for it.
    return query
    select 'capabilities', q.queue_id::text, format('%s for %s', q.caps_key, q.required_capabilities)
      from ff_queue q
     where case when q.required_capabilities = '{}' then q.caps_key <> ''
                else q.caps_key <> ff__caps_key(q.required_capabilities)
                     or q.required_capabilities <> array(select distinct t.token collate "C"
                                                           from unnest(q.required_capabilities) t(token)
                                                          where t.token <> '' and t.token not like '%,%'
                                                            and t.token !~ E'[\\x01-\\x20\\x7f]'
                                                          order by 1) end;

    -- The execution with its state words, queue, grant, lane and flow.
    return query
    select v.rule, ff__wire_id(e.partition_key, e.execution_id),
           case v.rule
               when 'state_word' then e.state::text
               when 'queue_row' then
                   format('queue %s is of lane %s, namespace %s, limited %s', e.queue_id, e.queue_lane_id,
                          e.queue_namespace, e.queue_limited)
               when 'ready_in' then
                   format('%s of queue %s, ready in %s, granted %s', e.state, e.queue_id, e.ready_in, e.granted)
               when 'due_at' then
                   format('%s, due %s, delay until %s, grant until %s', e.state, e.due_at_ms, e.delay_until_ms,
                          e.grant_expires_at_ms)
               when 'lease_columns' then e.lifecycle_phase
               when 'terminal_columns' then format('%s, terminal_at_ms %s', e.terminal_outcome, e.terminal_at_ms)
               when 'delay_columns' then format('%s, delay_until_ms %s', e.eligibility_state, e.delay_until_ms)
               when 'lease_bounds' then
                   format('lease ends %s, check %s, attempt %s, deadline %s', e.lease_expires_at_ms, e.due_at_ms,
                          e.attempt_timeout_at_ms, e.deadline_at_ms)
               when 'last_time' then
                   format('delay %s, not before %s, deadline %s, attempt timeout %s', e.delay_until_ms, e.not_before_ms,
                          e.deadline_at_ms, e.attempt_timeout_at_ms)
               when 'priority' then e.priority::text
               when 'rank' then format('rank %s, priority %s', e.rank, e.priority)
               when 'attempt_id' then e.attempt_state
               when 'attempt_columns' then
                   format('%s, attempt %s %s, ended %s', e.state, e.attempt_index, e.attempt_outcome,
                          e.attempt_ended_at_ms)
               when 'release_columns' then
                   format('%s, %s at %s of lease %s', e.state, e.release_op, e.release_at_ms, e.release_lease_epoch)
               when 'partition' then 'partition_key is not the last byte of the id'
               when 'lane_registered' then e.lane_id
               when 'policy_limits' then
                   format('retries %s, reclaims %s, replays %s', e.retry_count, e.lease_reclaim_count, e.replay_count)
               when 'grants' then format('%s grant on a row that is %s', e.grant_kind, e.public_state)
               when 'mirrors' then
                   format('granted %s, grant %s; tags %s; attempt timeout %s, retention %s', e.granted,
                          e.grant_expires_at_ms, e.tags, e.attempt_timeout_ms, e.retention_ms)
           end
      from (select x.*,
                   concat_ws(' ',
                       case when x.public_state is null then 'state_word' end,
                       case when (x.lane_id, x.namespace, x.limited)
                                 is distinct from (x.queue_lane_id, x.queue_namespace, x.queue_limited)
                            then 'queue_row' end,
                       -- A member of a flow cancelled with its members may be in its queue or not.
                       case when abs(x.ready_in) <> x.queue_id
                              or x.ready_in > 0 and not x.limited
                                 and (x.state <> 'ready' or x.priority <> 0 or x.rank < x.start_rank)
                              or x.ready_in is not null
                                 and (x.granted or x.blocking_reason <> 'waiting_for_worker' or x.building)
                              or x.ready_in is null and x.blocking_reason = 'waiting_for_worker' and not x.granted
                                 and x.claimable
                            then 'ready_in' end,
                       case when x.state <> 'leased'
                             and x.due_at_ms is distinct from case
                                     when x.eligibility_state = 'not_eligible_until_time'
                                     then case when x.granted then coalesce(x.due_at_ms, 0) else x.delay_until_ms end
                                     when x.eligibility_state in ('blocked_by_quota', 'blocked_by_budget')
                                     then ff__max_time_ms()
                                     when x.granted and x.blocking_reason = 'waiting_for_worker'
                                     then x.grant_expires_at_ms
                                 end
                            then 'due_at' end,
                       case when x.lifecycle_phase = 'active'
                             and num_nulls(x.lease_id, x.lease_expires_at_ms, x.lease_ttl_ms, x.worker_id,
                                           x.worker_instance_id, x.attempt_id, x.attempt_index) > 0
                            then 'lease_columns' end,
                       case when (x.lifecycle_phase = 'terminal') <> (x.terminal_at_ms is not null)
                            then 'terminal_columns' end,
                       case when (x.eligibility_state = 'not_eligible_until_time' and x.delay_until_ms is null)
                              or (x.delay_until_ms is not null
                                  and x.eligibility_state not in ('not_eligible_until_time', 'blocked_by_dependencies'))
                            then 'delay_columns' end,
                       case when x.lifecycle_phase = 'active'
                             and (x.lease_expires_at_ms > x.attempt_timeout_at_ms
                                  or x.lease_expires_at_ms > x.deadline_at_ms
                                  or x.state = 'leased'
                                     and case when x.granted then x.due_at_ms is distinct from x.grant_expires_at_ms
                                              else coalesce(x.due_at_ms > x.lease_expires_at_ms, true) end)
                            then 'lease_bounds' end,
                       case when greatest(x.delay_until_ms, x.not_before_ms, x.deadline_at_ms, x.attempt_timeout_at_ms,
                                          x.due_at_ms) > ff__max_time_ms() then 'last_time' end,
                       case when x.priority not between 0 and 9000 then 'priority' end,
                       case when x.rank >> 49 <> 9000 - x.priority then 'rank' end,
                       case when x.attempt_id is null and x.attempt_state in ('running_attempt', 'attempt_interrupted')
                            then 'attempt_id' end,
                       case when (x.attempt_index is null) <> (x.total_attempt_count = 0)
                              or x.attempt_index is not null
                                 and num_nulls(x.attempt_id, x.attempt_type, x.attempt_started_at_ms, x.lease_id,
                                               x.worker_id,
                                               x.worker_instance_id) > 0
                              or (x.attempt_state in ('running_attempt', 'attempt_interrupted'))
                                 <> (x.attempt_index is not null and x.attempt_outcome is null)
                              or (x.attempt_ended_at_ms is null) <> (x.attempt_outcome is null)
                              or x.attempt_state = 'pending_first_attempt' and x.attempt_index is not null
                              or x.attempt_state = 'pending_retry_attempt'
                                 and coalesce(x.attempt_outcome, 'none') not in ('failure', 'expired')
                            then 'attempt_columns' end,
                       case when (x.release_op is null) <> (x.release_at_ms is null)
                              or (x.release_lease_id is null) <> (x.release_lease_epoch is null)
                              or x.release_op is null and num_nonnulls(x.release_lease_id, x.release_detail) > 0
                              or x.release_lease_epoch > x.lease_epoch
                              or x.release_op is null and x.attempt_state = 'attempt_interrupted'
                                 and x.lifecycle_phase <> 'active'
                            then 'release_columns' end,
                       case when x.partition_key <> ff__partition(x.execution_id) then 'partition' end,
                       case when not x.has_lane then 'lane_registered' end,
                       case when x.retry_count > coalesce((x.policy #> '{retry_policy,max_retries}')::int, 0)
                              or x.lease_reclaim_count > coalesce((x.policy -> 'max_reclaim_count')::int, 100)
                              or x.replay_count > coalesce((x.policy -> 'max_replay_count')::int, 10)
                            then 'policy_limits' end,
                       case when x.grant_kind is not null
                             and (x.lifecycle_phase = 'terminal'
                                  or x.state = 'leased' and x.lease_expires_at_ms > v_now
                                  or (x.grant_expires_at_ms > v_now
                                      and (x.grant_kind = 'claim' and x.lifecycle_phase = 'runnable'
                                           and x.attempt_state = 'attempt_interrupted'
                                           or x.grant_kind = 'resume' and x.lifecycle_phase = 'runnable'
                                              and x.attempt_state <> 'attempt_interrupted'
                                           or x.grant_kind in ('claim', 'resume') and x.lifecycle_phase = 'active')))
                            then 'grants' end,
                       case when x.granted <> (x.grant_kind is not null) or x.tags = '{}'
                              or x.attempt_timeout_ms
                                 is distinct from (x.policy #> '{timeout_policy,attempt_timeout_ms}')::bigint
                              or x.retention_ms is distinct from (x.policy -> 'retention_ms')::bigint
                            then 'mirrors' end) as broken
              from (select c.*, w.lifecycle_phase, w.eligibility_state, w.blocking_reason, w.terminal_outcome,
                           w.attempt_state, w.public_state, q.lane_id as queue_lane_id, q.namespace as queue_namespace,
                           q.limited as queue_limited, q.start_rank, g.kind as grant_kind,
                           g.expires_at_ms as grant_expires_at_ms,
                           l.lane_id is not null as has_lane, coalesce(f.claimable, true) as claimable,
                           coalesce(f.public_flow_state = 'building', false) as building
                      from ff_execution c
                      left join ff_state_word w on w.state = c.state
                      left join ff_queue q on q.queue_id = c.queue_id
                      left join ff_claim_grant g on g.execution_id = c.execution_id
                      left join ff_lane_registry l on l.lane_id = c.lane_id
                      left join ff_flow_core f on f.flow_id = c.flow_id offset 0) x offset 0) e
     cross join lateral string_to_table(e.broken, ' ') v(rule)
     where e.broken <> '';

    -- Each attempt.
    return query
    select v.rule, ff__wire_id(e.partition_key, e.execution_id),
           case v.rule
               when 'open_attempt' then format('attempt %s is open', e.attempt_index)
               when 'attempt_type' then format('attempt %s is of type %s', e.attempt_index, e.attempt_type)
               when 'attempt_words' then
                   format('attempt %s: %s, %s, %s', e.attempt_index, e.attempt_type, e.state, e.outcome)
               when 'lease_epoch' then format('attempt %s has epoch %s', e.attempt_index, e.lease_epoch)
           end
      from (select c.partition_key, a.*,
                   concat_ws(' ',
                       case when a.ended_at_ms is null
                             and (c.lifecycle_phase = 'terminal'
                                  or a.attempt_index is distinct from c.current_attempt_index
                                  or a.attempt_id is distinct from c.current_attempt_id)
                            then 'open_attempt' end,
                       case when (a.attempt_index = 0 and a.attempt_type in ('retry', 'reclaim'))
                              or (a.attempt_index > 0 and a.attempt_type = 'initial')
                            then 'attempt_type' end,
                       case when a.attempt_type not in ('initial', 'retry', 'reclaim', 'replay')
                              or (a.state, coalesce(a.outcome, 'none')) not in (
                                     ('started', 'none'), ('suspended', 'none'), ('ended_success', 'success'),
                                     ('ended_failure', 'failure'), ('ended_failure', 'expired'),
                                     ('ended_cancelled', 'cancelled'), ('ended_cancelled', 'skipped'),
                                     ('interrupted_reclaimed', 'interrupted_reclaimed'))
                              or (a.ended_at_ms is null) <> (a.outcome is null)
                            then 'attempt_words' end,
                       case when a.lease_epoch > c.lease_epoch or a.lease_epoch <= a.before then 'lease_epoch' end)
                       as broken
              from (select t.execution_id, t.attempt_index, t.attempt_id, t.attempt_type, t.state, t.outcome,
                           t.ended_at_ms,
                           t.lease_epoch,
                           lag(t.lease_epoch) over (partition by t.execution_id order by t.attempt_index) as before
                      from ff_attempt t) a
              join ff_exec_core c on c.execution_id = a.execution_id offset 0) e
     cross join lateral string_to_table(e.broken, ' ') v(rule)
     where e.broken <> '';

    -- The execution with its attempts.
    return query
    select v.rule, ff__wire_id(e.partition_key, e.execution_id),
           case v.rule
               when 'attempt_count' then format('%s attempts counted, %s stored', e.total_attempt_count, e.attempts)
               when 'current_lease' then
                   format('execution has epoch %s, attempt %s', e.lease_epoch, e.attempt_epoch)
               when 'current_attempt' then
                   format('%s, attempt %s is %s', e.public_state, e.current_attempt_index, e.attempt_is)
               when 'started_at' then format('%s, first attempt %s', e.started_at_ms, e.first_started_at_ms)
           end
      from (select c.partition_key, c.execution_id, c.total_attempt_count, c.lease_epoch, c.public_state,
                   c.current_attempt_index, c.started_at_ms, coalesce(n.attempts, 0) as attempts,
                   a.lease_epoch as attempt_epoch, a.state as attempt_is, n.first_started_at_ms,
                   concat_ws(' ',
                       case when c.total_attempt_count <> coalesce(n.attempts, 0)
                              or coalesce(n.last_index, -1) <> coalesce(n.attempts, 0) - 1
                            then 'attempt_count' end,
                       case when c.lifecycle_phase = 'active'
                             and (a.lease_id, a.lease_epoch) is distinct from (c.lease_id, c.lease_epoch)
                            then 'current_lease' end,
                       case when c.current_attempt_id is not null
                             and a.state is distinct from
                                 case when c.lifecycle_phase = 'active' then 'started' else 'suspended' end
                            then 'current_attempt' end,
                       case when c.started_at_ms is distinct from n.first_started_at_ms then 'started_at' end) as broken
              from ff_exec_core c
              left join ff_attempt a on a.execution_id = c.execution_id and a.attempt_index = c.current_attempt_index
              left join (select t.execution_id, count(*) as attempts, max(t.attempt_index) as last_index,
                                min(t.started_at_ms) filter (where t.attempt_index = 0) as first_started_at_ms
                           from ff_attempt t group by t.execution_id) n on n.execution_id = c.execution_id offset 0) e
     cross join lateral string_to_table(e.broken, ' ') v(rule)
     where e.broken <> '';

    -- The execution with its events.
    return query
    select v.rule, ff__wire_id(e.partition_key, e.execution_id),
           case v.rule
               when 'completion_events' then
                   format('%s completion events, %s ends', e.completions,
                          e.replay_count + (e.lifecycle_phase = 'terminal')::int)
               when 'lease_start_events' then
                   format('%s leases, %s started by an event', e.lease_epoch, e.started_leases)
               when 'lease_end_events' then
                   format('%s leases are over, %s ended by an event',
                          e.lease_epoch - (e.ownership_state = 'leased')::int,
                          e.ends)
           end
      from (select c.partition_key, c.execution_id, c.replay_count, c.lifecycle_phase, c.lease_epoch, c.ownership_state,
                   n.completions, n.started_leases, n.ends,
                   concat_ws(' ',
                       case when v_completions
                             and coalesce(n.completions, 0) <> c.replay_count + (c.lifecycle_phase = 'terminal')::int
                            then 'completion_events' end,
                       case when v_leases
                             and (coalesce(n.starts, 0) <> c.lease_epoch
                                  or coalesce(n.started_leases, 0) <> c.lease_epoch)
                            then 'lease_start_events' end,
                       case when v_leases
                             and (coalesce(n.ends, 0) <> c.lease_epoch - (c.ownership_state = 'leased')::int
                                  or n.ended_leases <> n.ends)
                            then 'lease_end_events' end) as broken
              from ff_exec_core c
              left join (select y.execution_id, sum(y.events) filter (where y.what = 'completion') as completions,
                                sum(y.events) filter (where y.what = 'start') as starts,
                                count(y.lease_epoch) filter (where y.what = 'start') as started_leases,
                                sum(y.events) filter (where y.what = 'end') as ends,
                                count(y.lease_epoch) filter (where y.what = 'end') as ended_leases
                           from (select x.execution_id, w.what, x.lease_epoch, count(*) as events
                                   from ff_event x
                                  cross join lateral (
                                        select case when x.family = 'completion' then 'completion'
                                                    when x.event_type in ('acquired', 'reclaimed') then 'start'
                                                    when x.event_type in ('released', 'expired', 'revoked') then 'end'
                                               end) w(what)
                                  where x.family in ('completion', 'lease') and x.execution_id is not null
                                    and w.what is not null
                                  group by x.execution_id, w.what, x.lease_epoch) y
                          group by y.execution_id) n on n.execution_id = c.execution_id
             where v_completions or v_leases offset 0) e
     cross join lateral string_to_table(e.broken, ' ') v(rule)
     where e.broken <> '';

    return query
    select 'orphan', o.execution_id::text, o.kind
      from (select a.execution_id, 'ff_attempt_past' as kind from ff_attempt_past a
            union all select g.execution_id, 'ff_claim_grant' from ff_claim_grant g
            union all select m.execution_id, 'ff_stream_meta' from ff_stream_meta m
            union all select s.execution_id, 'ff_stream_summary' from ff_stream_summary s
            union all select k.child_id, 'ff_child' from ff_child k
            union all select distinct f.execution_id, 'ff_stream_frame' from ff_stream_frame f) o
     where not exists (select from ff_execution c where c.execution_id = o.execution_id)
    union all
    select 'parent_ended', ff__wire_id(c.partition_key, c.execution_id), format('its parent is %s', p.public_state)
      from ff_child k
      join ff_exec_core c on c.execution_id = k.child_id and c.terminal_outcome = 'none'
      join ff_exec_core p on p.execution_id = k.parent_id and p.terminal_outcome not in ('none', 'success')
     where not k.detached
       and not exists (select from ff_child_work w
                        where w.parent_id = k.parent_id and w.action in ('check', 'cancel')
                          and coalesce(w.child_id, k.child_id) = k.child_id)
    union all
    select 'idempotency_key', ff__wire_id(e.partition_key, e.execution_id),
           'a live key names this execution with another request'
      from ff_idempotency k
      join ff_exec_core e on e.execution_id = k.execution_id
      join ff_exec_input i on i.execution_id = k.execution_id
     where k.expires_at_ms > ff__now_ms()
       and (k.request_hash <> i.request_hash or k.namespace <> e.namespace);
end
$$;
