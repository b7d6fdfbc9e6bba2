-- Rules of the execution lifecycle that must hold at every commit; each branch returns the rows that break one.
-- Rules that count events are asked only while nothing of that family was muted or trimmed.
create or replace function ff__invariants_lifecycle() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
with e as (select c.*, ff__wire_id(c.partition_key, c.execution_id) as wire_id from ff_exec_core c),
     a as (select t.* from ff_attempt t),
     counted as (select f.family from ff_event_family f
                  where f.trimmed_event_id = 0 and f.muted <@ '{renewed}'::text[])
    select 'legal_vector', e.wire_id,
           concat_ws(' / ', e.lifecycle_phase, e.ownership_state, e.eligibility_state, e.blocking_reason,
                     e.terminal_outcome, e.attempt_state, e.public_state)
      from e
     where ff__public_state(e.lifecycle_phase, e.ownership_state, e.eligibility_state, e.blocking_reason,
                            e.terminal_outcome, e.attempt_state, e.total_attempt_count) is null
    union all
    select 'public_state', e.wire_id, e.public_state
      from e
     where e.public_state is distinct from
           ff__public_state(e.lifecycle_phase, e.ownership_state, e.eligibility_state, e.blocking_reason,
                            e.terminal_outcome, e.attempt_state, e.total_attempt_count)
    union all
    select 'lease_columns', e.wire_id, e.lifecycle_phase
      from e
     where case when e.lifecycle_phase = 'active'
                then num_nulls(e.lease_id, e.lease_expires_at_ms, e.worker_id, e.worker_instance_id,
                               e.current_attempt_id, e.current_attempt_index) > 0
                else num_nonnulls(e.lease_id, e.lease_expires_at_ms, e.worker_id) > 0 end
    union all
    select 'terminal_columns', e.wire_id, format('%s, terminal_at_ms %s', e.terminal_outcome, e.terminal_at_ms)
      from e
     where (e.lifecycle_phase = 'terminal') <> (e.terminal_at_ms is not null)
        or (e.lifecycle_phase = 'terminal') <> (e.terminal_outcome <> 'none')
    union all
    select 'delay_columns', e.wire_id, format('%s, delay_until_ms %s', e.eligibility_state, e.delay_until_ms)
      from e
     where (e.eligibility_state = 'not_eligible_until_time' and e.delay_until_ms is null)
        or (e.delay_until_ms is not null
            and e.eligibility_state not in ('not_eligible_until_time', 'blocked_by_dependencies'))
    union all
    select 'open_attempt', e.wire_id, format('attempt %s is open', a.attempt_index)
      from e join a on a.execution_id = e.execution_id and a.ended_at_ms is null
     where e.lifecycle_phase = 'terminal' or a.attempt_index is distinct from e.current_attempt_index
        or a.attempt_id is distinct from e.current_attempt_id
    union all
    select 'attempt_count', e.wire_id, format('%s attempts counted, %s stored', e.total_attempt_count, count(a.*))
      from e left join a on a.execution_id = e.execution_id
     group by e.wire_id, e.total_attempt_count
    having e.total_attempt_count <> count(a.*) or coalesce(max(a.attempt_index), -1) <> count(a.*) - 1
    union all
    select 'attempt_type', e.wire_id, format('attempt %s is of type %s', a.attempt_index, a.attempt_type)
      from e join a on a.execution_id = e.execution_id
     where (a.attempt_index = 0 and a.attempt_type in ('retry', 'reclaim'))
        or (a.attempt_index > 0 and a.attempt_type = 'initial')
    union all
    select 'attempt_words', e.wire_id,
           format('attempt %s: %s, %s, %s', a.attempt_index, a.attempt_type, a.state, a.outcome)
      from e join a on a.execution_id = e.execution_id
     where a.attempt_type not in ('initial', 'retry', 'reclaim', 'replay')
        or (a.state, coalesce(a.outcome, 'none')) not in (
               ('started', 'none'), ('suspended', 'none'), ('ended_success', 'success'), ('ended_failure', 'failure'),
               ('ended_failure', 'expired'), ('ended_cancelled', 'cancelled'), ('ended_cancelled', 'skipped'),
               ('interrupted_reclaimed', 'interrupted_reclaimed'))
        or (a.ended_at_ms is null) <> (a.outcome is null)
    union all
    select 'lease_epoch', e.wire_id, format('attempt %s has epoch %s', v.attempt_index, v.lease_epoch)
      from (select a.execution_id, a.attempt_index, a.lease_epoch,
                   lag(a.lease_epoch) over (partition by a.execution_id order by a.attempt_index) as before
              from a) v
      join e on e.execution_id = v.execution_id
     where v.lease_epoch > e.lease_epoch or v.lease_epoch <= v.before
    union all
    select 'current_lease', e.wire_id, format('execution has epoch %s, attempt %s', e.lease_epoch, a.lease_epoch)
      from e left join a on a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
     where e.lifecycle_phase = 'active'
       and (a.lease_id, a.lease_epoch) is distinct from (e.lease_id, e.lease_epoch)
    union all
    select 'lease_bounds', e.wire_id,
           format('lease ends %s, check %s, attempt %s, deadline %s', e.lease_expires_at_ms, e.lease_check_at_ms,
                  e.attempt_timeout_at_ms, e.deadline_at_ms)
      from e
     where e.lifecycle_phase = 'active'
       and (e.lease_expires_at_ms > e.attempt_timeout_at_ms or e.lease_expires_at_ms > e.deadline_at_ms
            or e.lease_check_at_ms > e.lease_expires_at_ms
            or (e.ownership_state = 'leased' and e.lease_check_at_ms is null))
    union all
    select 'priority', e.wire_id, e.priority::text from e where e.priority not between 0 and 9000
    union all
    select 'policy_limits', e.wire_id,
           format('retries %s, reclaims %s, replays %s', e.retry_count, e.lease_reclaim_count, e.replay_count)
      from e join ff_exec_input i on i.execution_id = e.execution_id
     where e.retry_count > coalesce((i.policy #> '{retry_policy,max_retries}')::int, 0)
        or e.lease_reclaim_count > coalesce((i.policy -> 'max_reclaim_count')::int, 100)
        or e.replay_count > coalesce((i.policy -> 'max_replay_count')::int, 10)
    union all
    select 'completion_events', e.wire_id,
           format('%s completion events, %s ends', count(x.event_id),
                  e.replay_count + (e.lifecycle_phase = 'terminal')::int)
      from e left join ff_event x on x.execution_id = e.execution_id and x.family = 'completion'
     where exists (select from counted where counted.family = 'completion')
     group by e.wire_id, e.replay_count, e.lifecycle_phase
    having count(x.event_id) <> e.replay_count + (e.lifecycle_phase = 'terminal')::int
    union all
    select 'lease_start_events', e.wire_id,
           format('%s leases, %s started by an event', e.lease_epoch, count(distinct x.lease_epoch))
      from e left join ff_event x on x.execution_id = e.execution_id and x.family = 'lease'
                                 and x.event_type in ('acquired', 'reclaimed')
     where exists (select from counted where counted.family = 'lease')
     group by e.wire_id, e.lease_epoch
    having count(x.event_id) <> e.lease_epoch or count(distinct x.lease_epoch) <> e.lease_epoch
    union all
    select 'lease_end_events', e.wire_id,
           format('%s leases are over, %s ended by an event', e.lease_epoch - (e.ownership_state = 'leased')::int,
                  count(x.event_id))
      from e left join ff_event x on x.execution_id = e.execution_id and x.family = 'lease'
                                 and x.event_type in ('released', 'expired', 'revoked')
     where exists (select from counted where counted.family = 'lease')
     group by e.wire_id, e.lease_epoch, e.ownership_state
    having count(x.event_id) <> e.lease_epoch - (e.ownership_state = 'leased')::int
        or count(distinct x.lease_epoch) <> count(x.event_id)
    union all
    select 'grants', e.wire_id, format('%s grant on a row that is %s', g.kind, e.public_state)
      from e join ff_claim_grant g on g.execution_id = e.execution_id
     where e.lifecycle_phase = 'terminal' or e.ownership_state = 'leased' and e.lease_expires_at_ms > ff_now_ms()
        or (g.expires_at_ms > ff_now_ms()
            and (g.kind = 'claim' and e.lifecycle_phase = 'runnable' and e.attempt_state = 'attempt_interrupted'
                 or g.kind = 'resume' and e.lifecycle_phase = 'runnable' and e.attempt_state <> 'attempt_interrupted'
                 or g.kind in ('claim', 'resume') and e.lifecycle_phase = 'active'))
    union all
    select 'mirrors', e.wire_id,
           format('reserved until %s, grant %s; tagged %s, tags %s; attempt timeout %s', e.reserved_until_ms,
                  g.expires_at_ms, e.tagged, i.tags, e.attempt_timeout_ms)
      from e join ff_exec_input i on i.execution_id = e.execution_id
      left join ff_claim_grant g on g.execution_id = e.execution_id
     where e.reserved_until_ms is distinct from g.expires_at_ms or e.tagged <> (i.tags <> '{}')
        or e.attempt_timeout_ms is distinct from (i.policy #> '{timeout_policy,attempt_timeout_ms}')::bigint
        or e.retention_ms is distinct from (i.policy -> 'retention_ms')::bigint
        or (e.namespace, e.created_at_ms) <> (i.namespace, i.created_at_ms)
    union all
    select 'current_attempt', e.wire_id, format('%s, attempt %s is %s', e.public_state, e.current_attempt_index, a.state)
      from e left join a on a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
     where e.current_attempt_id is not null
       and a.state is distinct from case when e.lifecycle_phase = 'active' then 'started' else 'suspended' end
    union all
    select 'started_at', e.wire_id, format('%s, first attempt %s', e.started_at_ms, min(a.started_at_ms))
      from e left join a on a.execution_id = e.execution_id
     group by e.wire_id, e.started_at_ms
    having e.started_at_ms is distinct from min(a.started_at_ms)
    union all
    select 'lane_registered', e.wire_id, e.lane_id
      from e where not exists (select from ff_lane_registry l where l.lane_id = e.lane_id)
    union all
    select 'input_row', e.wire_id, 'has no row in ff_exec_input'
      from e where not exists (select from ff_exec_input i where i.execution_id = e.execution_id)
    union all
    select 'orphan', o.execution_id::text, o.kind
      from (select i.execution_id, 'ff_exec_input' as kind from ff_exec_input i
            union all select a.execution_id, 'ff_attempt' from a
            union all select g.execution_id, 'ff_claim_grant' from ff_claim_grant g
            union all select m.execution_id, 'ff_stream_meta' from ff_stream_meta m
            union all select s.execution_id, 'ff_stream_summary' from ff_stream_summary s
            union all select distinct f.execution_id, 'ff_stream_frame' from ff_stream_frame f) o
     where not exists (select from ff_exec_core c where c.execution_id = o.execution_id)
    union all
    select 'idempotency_key', e.wire_id, 'a live key names this execution with another request'
      from ff_idempotency k
      join e on e.execution_id = k.execution_id
      join ff_exec_input i on i.execution_id = k.execution_id
     where k.expires_at_ms > ff_now_ms()
       and (k.request_hash <> i.request_hash or k.namespace <> e.namespace)
    union all
    select 'capabilities', e.wire_id, format('%s for %s', e.caps_key, i.required_capabilities)
      from e join ff_exec_input i on i.execution_id = e.execution_id
     where e.caps_key <> ff__caps_key(i.required_capabilities)
        or i.required_capabilities <> array(select distinct t.token collate "C"
                                              from unnest(i.required_capabilities) t(token)
                                             where t.token <> '' and t.token not like '%,%'
                                               and t.token !~ '[\x01-\x20\x7f]'
                                             order by 1)
    union all
    select 'attempt_id', e.wire_id, e.attempt_state
      from e
     where (e.current_attempt_id is not null) <> (e.attempt_state in ('running_attempt', 'attempt_interrupted'))
    union all
    select 'partition', e.wire_id, 'partition_key is not the last byte of the id'
      from e where e.partition_key <> ff__partition(e.execution_id);
end
$$;
