"""The statements of the worker: functions of the engine, with only the columns that the worker uses."""

from typing import Final

CLAIM: Final = """
    select c.handle, c.handle_kind, c.execution_id, c.execution_kind, c.payload, c.attempt_index, c.flow_id, c.lane_id,
           c.namespace, nullif(c.tags, '{}'),
           case when c.attempt_timeout_at_ms is not null or c.deadline_at_ms is not null
                then c.lease_expires_at_ms - ff_now_ms() end
      from ff_claim_many(p_lane_id => %(lane)s, p_worker_id => %(worker_id)s,
                         p_worker_instance_id => %(instance_id)s, p_limit => %(limit)s,
                         p_capabilities => %(capabilities)s, p_lease_ttl_ms => %(ttl_ms)s,
                         p_namespace => %(namespace)s) c
"""
"""The last column: the remaining time of a lease that may be shorter than requested."""

COMPLETE: Final = """
    select r.ordinal, r.error_kind
      from set_config('lock_timeout', %(lock_timeout_ms)s::text, true) w(ms)
     cross join lateral ff_complete_many(p_handles => %(handles)b::text[], p_results => %(results)b::bytea[],
                                         p_result_encoding => case when w.ms <> '' then %(encoding)s::text end) r
     where r.outcome <> 'completed'
"""
"""The setting holds for this statement; lateral evaluates it first. A locked row would block all others in the call:
it raises LockNotAvailable, and the executions are reported one by one."""

RENEW: Final = """
    select r.ordinal, r.lease_expires_at_ms - ff_now_ms(), r.error_kind
      from set_config('lock_timeout', %(lock_timeout_ms)s::text, true) w(ms)
     cross join lateral ff_renew_many(p_handles => %(handles)b::text[],
                                      p_lease_ttl_ms => case when w.ms <> '' then %(ttl_ms)s::bigint end) r
"""

FAIL: Final = """
    select f.outcome, f.public_state, f.delay_until_ms - ff_now_ms()
      from set_config('lock_timeout', %(lock_timeout_ms)s::text, true) w(ms)
     cross join lateral ff_fail(p_handle => case when w.ms <> '' then %(handle)s::text end, p_reason => %(reason)s,
                                p_classification => %(classification)s, p_category => %(category)s) f
"""

RELEASE: Final = """
    select d.outcome
      from set_config('lock_timeout', %(lock_timeout_ms)s::text, true) w(ms)
     cross join lateral ff_delay(p_handle => case when w.ms <> '' then %(handle)s::text end,
                                 p_delay_ms => %(delay_ms)s) d
"""

PROGRESS: Final = "select d.progress_message from ff_describe_execution(p_execution_id => %(execution_id)s) d"

PUT_OFF: Final = """
    select d.delay_until_ms - ff_now_ms()
      from set_config('lock_timeout', %(lock_timeout_ms)s::text, true) w(ms)
     cross join lateral ff_progress(p_handle => case when w.ms <> '' then %(handle)s::text end,
                                    p_message => %(message)s) p
     cross join lateral ff_delay(p_handle => case when p.progress_updated_at_ms > 0 then %(handle)s::text end,
                                 p_delay_ms => %(delay_ms)s) d
"""

REGISTER: Final = """
    select r.outcome from ff_register_worker(p_worker_id => %(worker_id)s, p_worker_instance_id => %(instance_id)s,
                                             p_lanes => %(lanes)s, p_capabilities => %(capabilities)s,
                                             p_liveness_ttl_ms => %(liveness_ms)s, p_namespace => %(namespace)s) r
"""

HEARTBEAT: Final = """
    select h.outcome from ff_heartbeat_worker(p_worker_instance_id => %(instance_id)s, p_namespace => %(namespace)s) h
"""

MARK_STOPPED: Final = """
    select m.outcome from ff_mark_worker_dead(p_worker_instance_id => %(instance_id)s, p_reason => 'stopped',
                                              p_namespace => %(namespace)s) m
"""

TICK: Final = "select t.step, t.processed, t.errors, t.more from ff_tick(p_max_ms => %(max_ms)s) t"

TAKE_LOCK: Final = """
    select pg_advisory_lock_shared(hashtextextended('pyff worker ' || %(instance_id)s, 0))
"""

LIST_WORKERS: Final = """
    select w.cursor, w.worker_instance_id
      from ff_list_workers(p_namespace => %(namespace)s, p_after => %(after)s, p_limit => %(limit)s) w
"""

SUSPECTS: Final = """
    with after as (
        select w.worker_instance_id
          from ff_list_workers(p_namespace => %(namespace)s, p_after => %(cursor)s, p_limit => %(limit)s) w
    ), near as (
        select a.worker_instance_id as id from after a
        union -- the list is circular
        select w.worker_instance_id
          from ff_list_workers(p_namespace => %(namespace)s,
                               p_limit => %(limit)s::int - (select count(*) from after)::int) w
    )
    select n.id
      from near n
     where case when n.id <> %(instance_id)s and starts_with(n.id, %(prefix)s)
                then pg_try_advisory_xact_lock(hashtextextended('pyff worker ' || n.id, 0)) end
       and pg_postmaster_start_time() < now() - %(settled_s)s * interval '1 s'
"""
"""Neighbours that should hold a lock and do not. Empty shortly after a server start, while workers reconnect."""

MARK_DEAD: Final = """
    with mine as materialized (
        select pg_try_advisory_xact_lock(hashtextextended('pyff worker ' || %(peer)s, 0)) as got,
               set_config('lock_timeout', %(lock_timeout_ms)s::text, true) as lock_timeout
    )
    select m.outcome, m.leases_revoked
      from mine
     cross join lateral ff_mark_worker_dead(p_worker_instance_id => case when mine.got then %(peer)s end,
                                            p_reason => 'its session ended', p_namespace => %(namespace)s,
                                            p_revoke_leases => true) m
     where mine.got
"""
"""Takes the peer's lock first: only one worker marks it dead, and none if it has reconnected."""
