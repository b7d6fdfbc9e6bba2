-- Rules of suspensions, waitpoints, signals and keys that must hold at every commit; each branch returns the rows that
-- break one. Rules that count events are checked only while nothing of that family was muted or trimmed.
create or replace function ff__invariants_suspensions() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
with e as not materialized (select c.*, ff__wire_id(c.partition_key, c.execution_id) as wire_id from ff_exec_core c),
     s as not materialized (select x.* from ff_suspension x),
     o as not materialized (select x.* from ff_suspension x where x.closed_at_ms is null),
     w as not materialized (select x.*, x.state in ('pending', 'active') as open from ff_waitpoint x),
     g as not materialized (select x.* from ff_signal x),
     counted as (select f.family from ff_event_family f where f.trimmed_event_id = 0 and f.muted = '{}')
    select 'suspended_phase', e.wire_id,
           format('%s, current suspension %s, open suspension %s', e.lifecycle_phase, e.current_suspension_id,
                  o.suspension_id)
      from e left join o on o.execution_id = e.execution_id
     where (e.lifecycle_phase = 'suspended') <> (o.suspension_id is not null)
        or o.suspension_id is distinct from e.current_suspension_id
        or (e.current_suspension_id is null) <> (e.current_waitpoint_id is null)
    union all
    select 'suspended_columns', e.wire_id,
           concat_ws(' / ', a.state, e.ready_in, e.due_at_ms, e.attempt_timeout_at_ms)
      from e left join ff_attempt a on a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
     where e.lifecycle_phase = 'suspended'
       and (num_nonnulls(e.ready_in, e.due_at_ms, e.attempt_timeout_at_ms) > 0 or a.state is distinct from 'suspended')
    union all
    select 'suspended_reason', e.wire_id, format('%s for %s', e.state, o.reason_code)
      from e join o on o.execution_id = e.execution_id
     where e.state is distinct from ff__suspended_state(o.reason_code)
    union all
    select 'open_waitpoints', e.wire_id, format('%s counted, %s open', e.open_waitpoints, coalesce(n.open, 0))
      from e left join (select w.execution_id, count(*) as open from w where w.open group by w.execution_id) n
                    on n.execution_id = e.execution_id
     where e.open_waitpoints <> coalesce(n.open, 0)
    union all
    select 'waitpoint_of_ended', e.wire_id,
           format('waitpoint %s is %s, attempt %s', w.waitpoint_id, w.state, w.attempt_index)
      from e join w on w.execution_id = e.execution_id
     where (w.open and (e.lifecycle_phase = 'terminal' or e.current_attempt_id is null
                        or w.attempt_index is distinct from e.current_attempt_index))
        or (w.state = 'active' and e.lifecycle_phase <> 'suspended')
    union all
    select 'active_waitpoint', e.wire_id, format('waitpoint %s has suspension %s', w.waitpoint_id, w.suspension_id)
      from e join w on w.execution_id = e.execution_id and w.state = 'active'
      left join o on o.execution_id = e.execution_id
     where w.suspension_id is distinct from o.suspension_id
        or w.waitpoint_id is distinct from o.waitpoint_ids[w.ordinal + 1]
        or w.expires_at_ms is distinct from o.timeout_at_ms
    union all
    select 'bound_waitpoints', e.wire_id, format('suspension %s has %s of %s active', o.suspension_id, count(w.*),
                                                 cardinality(o.waitpoint_ids))
      from e join o on o.execution_id = e.execution_id
      left join w on w.suspension_id = o.suspension_id and w.state = 'active'
     group by e.wire_id, e.current_waitpoint_id, o.suspension_id, o.waitpoint_ids
    having count(w.*) = 0 or count(w.*) <> cardinality(o.waitpoint_ids)
        or count(w.*) filter (where w.ordinal = 0) <> 1
        or bool_or(w.ordinal = 0 and w.waitpoint_id is distinct from e.current_waitpoint_id)
    union all
    select 'waitpoint_words', w.waitpoint_id::text,
           concat_ws(' / ', w.state, w.close_reason, w.suspension_id, w.ordinal)
      from w
     where w.state not in ('pending', 'active', 'closed', 'expired')
        or w.open <> (w.closed_at_ms is null) or w.open <> (w.close_reason is null)
        or (w.state = 'pending' and num_nonnulls(w.suspension_id, w.ordinal) > 0)
        or (w.state = 'expired' and w.close_reason <> 'never_committed')
        or (w.open and w.token_fingerprint !~ '^[0-9a-f]{16}$')
    union all
    select 'suspension_words', s.suspension_id::text, concat_ws(' / ', s.outcome, s.close_reason, s.resume_trigger)
      from s
     where s.outcome not in ('suspended', 'already_satisfied')
        or (s.closed_at_ms is null) <> (s.close_reason is null)
        or s.close_reason not in ('resumed', 'operator_resume', 'already_satisfied', 'timed_out_fail',
                                  'timed_out_cancel',
                                  'timed_out_expire', 'timed_out_auto_resume', 'attempt_ended')
        or (s.outcome = 'already_satisfied') <> coalesce(s.close_reason = 'already_satisfied', false)
        or (s.timeout_at_ms is not null and s.timeout_behavior is null)
        or s.timeout_behavior not in ('fail', 'cancel', 'expire', 'auto_resume_with_timeout_signal', 'escalate')
        or ff__suspended_state(s.reason_code) is null
        or s.resume_trigger is distinct from case s.close_reason when 'resumed' then 'signal'
                                                                 when 'timed_out_auto_resume' then 'auto_resume'
                                                                 when 'operator_resume' then s.resume_trigger end
        or (s.close_reason = 'operator_resume'
            and (s.resumed_by is null or s.resume_trigger not in ('operator', 'policy')))
    union all
    select 'suspension_numbers', s.execution_id::text,
           format('%s suspensions, numbered up to %s', count(*), max(s.suspension_no))
      from s group by s.execution_id
    having count(*) <> max(s.suspension_no) or count(distinct s.suspension_no) <> count(*)
    union all
    select 'condition_not_met', o.execution_id::text,
           format('suspension %s is satisfied and still open', o.suspension_id)
      from o where ff__satisfied(o.condition, ff__seen_signals(o.suspension_id))
    union all
    select 'closing_signal', s.suspension_id::text, format('%s, closed by %s', s.close_reason, s.closer_signal_id)
      from s left join g on g.execution_id = s.execution_id and g.signal_id = s.closer_signal_id
     where (s.close_reason = 'resumed' and g.matched is not true)
        or (s.close_reason = 'timed_out_auto_resume'
            and (g.source_type is distinct from 'engine'
                 or (select count(*) from g x
                      where x.suspension_id = s.suspension_id and x.source_type = 'engine') <> 1))
    union all
    select 'resume_delay', e.wire_id, 'waits for a resume delay without a time'
      from e where e.blocking_reason = 'waiting_for_resume_delay' and e.delay_until_ms is null
    union all
    select 'signal_numbers', g.execution_id::text, format('%s signals, numbered up to %s', count(*), max(g.seq))
      from g group by g.execution_id
    having count(*) <> max(g.seq) or min(g.seq) <> 1
    union all
    select 'signal_counts', w.waitpoint_id::text,
           format('%s counted, %s matched; %s stored, %s matched', w.signal_count, w.matched_count, count(g.*),
                  count(g.*) filter (where g.matched))
      from w left join g on g.waitpoint_id = w.waitpoint_id
     group by w.waitpoint_id, w.signal_count, w.matched_count
    having w.signal_count <> count(g.*) or w.matched_count <> count(g.*) filter (where g.matched)
    union all
    select 'signal_key', g.waitpoint_id::text, format('key %s twice within its time', g.idempotency_key)
      from g join g x on x.waitpoint_id = g.waitpoint_id and x.idempotency_key = g.idempotency_key and x.seq > g.seq
                     and (x.source_type = 'operator') = (g.source_type = 'operator')
     where x.accepted_at_ms < g.dedup_until_ms
    union all
    select 'signal_limit', g.execution_id::text, format('%s signals of token holders', count(*))
      from g where g.source_type not in ('operator', 'engine')
     group by g.execution_id
    having count(*) > ff__max_signals(g.execution_id)
    union all
    select 'signal_consumed', g.signal_id::text, format('consumed by %s, discarded %s', g.consumed_by, g.discarded)
      from g left join s on s.suspension_id = g.consumed_by
     where (g.consumed_by is not null
            and (g.discarded or s.closed_at_ms is null or s.execution_id <> g.execution_id or g.matched is not true))
        or (g.matched is null) <> (g.suspension_id is null)
    union all
    select 'signal_buffer', g.signal_id::text, format('is live on a waitpoint that is %s', w.state)
      from g join w on w.waitpoint_id = g.waitpoint_id
     where not w.open and g.consumed_by is null and not g.discarded and g.matched is not true
    union all
    select 'keys', k.kid, case when k.active then 'active' else 'retired' end
      from ff_waitpoint_hmac k
     where (select count(*) from ff_waitpoint_hmac x where x.active) > 1
        or (k.active and (octet_length(k.secret) is distinct from 32 or k.expires_at_ms is not null))
        or (not k.active and k.expires_at_ms is null)
        or (k.secret is null) <> (k.gc_at_ms is not null)
    union all
    select 'waitpoint_key_known', w.waitpoint_id::text, w.token_kid
      from w where w.open and not exists (select from ff_waitpoint_hmac k where k.kid = w.token_kid)
    union all
    -- No text that the engine writes about an execution contains the MAC of one of its waitpoints.
    select 'token_shown', e.wire_id, format('%s of waitpoint %s', r.place, m.waitpoint_id)
      from (select w.execution_id, w.waitpoint_id,
                   right(ff__waitpoint_token(k.kid, k.secret,
                                             ff__wire_id(ff__partition(w.execution_id), w.execution_id),
                                             w.waitpoint_id),
                         64) as mac
              from w join ff_waitpoint_hmac k on k.kid = w.token_kid and k.secret is not null
             where w.open) m
      join e on e.execution_id = m.execution_id
     cross join lateral (
           select 'ff_exec_core' as place, e::text as row
           union all select 'ff_event', x::text from ff_event x where x.execution_id = m.execution_id
           union all select 'ff_attempt', a.release_detail::text from ff_attempt a where a.execution_id = m.execution_id
           union all select 'ff_suspension', x::text from s x where x.execution_id = m.execution_id
           union all select 'ff_waitpoint', x::text from w x where x.execution_id = m.execution_id) r
     where position(m.mac in r.row) > 0
    union all
    select 'secrets_privilege', r.rolname::text, 'may read ff_waitpoint_hmac'
      from pg_roles r join pg_class c on c.oid = 'ff_waitpoint_hmac'::regclass
     where r.rolname in ('ff_reader', 'ff_producer', 'ff_worker', 'ff_signaler', 'ff_operator', 'ff_admin')
       and r.oid <> c.relowner
       and has_table_privilege(r.oid, c.oid, 'select,insert,update,delete')
    union all
    select 'suspension_events', s.suspension_id::text,
           format('%s, %s started, %s resumed or timed out', s.outcome,
                  count(x.event_id) filter (where x.event_type in ('suspended', 'already_satisfied')),
                  count(x.event_id) filter (where x.event_type in ('resumed', 'timed_out')))
      from s left join ff_event x on x.execution_id = s.execution_id and x.suspension_id = s.suspension_id
                                 and x.family = 'suspension'
     where exists (select from counted where counted.family = 'suspension')
     group by s.suspension_id, s.outcome, s.close_reason
    having count(x.event_id) filter (where x.event_type = s.outcome) <> 1
        or count(x.event_id) filter (where x.event_type in ('suspended', 'already_satisfied')) <> 1
        or count(x.event_id) filter (where x.event_type = 'resumed')
           <> coalesce(s.close_reason in ('resumed', 'operator_resume', 'timed_out_auto_resume'), false)::int
        or count(x.event_id) filter (where x.event_type = 'timed_out')
           <> coalesce(s.close_reason in ('timed_out_fail', 'timed_out_cancel', 'timed_out_expire'), false)::int
    union all
    select 'signal_events', e.wire_id, format('%s delivered, %s events', coalesce(n.signals, 0), coalesce(v.events, 0))
      from (select g.execution_id, count(*) as signals from g where g.source_type <> 'engine' group by g.execution_id) n
      full join (select x.execution_id, count(*) as events from ff_event x
                  where x.family = 'signal' and x.event_type = 'delivered' and x.execution_id is not null
                  group by x.execution_id) v on v.execution_id = n.execution_id
      join e on e.execution_id = coalesce(n.execution_id, v.execution_id)
     where coalesce(n.signals, 0) <> coalesce(v.events, 0)
       and exists (select from counted where counted.family = 'signal')
    union all
    select 'orphan', x.execution_id::text, x.kind
      from (select s.execution_id, 'ff_suspension' as kind from s
            union all select w.execution_id, 'ff_waitpoint' from w
            union all select g.execution_id, 'ff_signal' from g) x
     where not exists (select from ff_execution c where c.execution_id = x.execution_id);
end
$$;
