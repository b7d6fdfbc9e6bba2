"""Is there work that is long overdue?"""

import shlex
from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, duration

_READY = """
select l.lane_id, t.now_ms - e.since_ms as late_ms,
       exists (select from ff_v_worker w where l.lane_id = any(w.lanes) and w.alive) as served
  from ff_v_lane l
 cross join (select ff_now_ms()) t(now_ms)
 cross join lateral (
       select (extract(epoch from min(x.last_transition_at)) * 1000)::bigint as since_ms
         from (select c.last_transition_at from ff_v_execution c where c.ready_on = l.lane_id limit 1000) x) e
 where l.state in ('active', 'draining') and t.now_ms - e.since_ms > %s
 order by 2 desc limit 20"""
_DUE = """
select distinct on (s.lane_id) s.lane_id, extract(epoch from s.for_how_long) * 1000 as late_ms,
       s.kind = 'lease_lapsed' as leased, e.worker_instance_id
  from ff_v_stuck s
  join ff_v_lane l on l.lane_id = s.lane_id and l.state in ('active', 'draining')
  join ff_v_execution e on e.execution_uuid = s.execution_uuid
 where s.kind in ('lease_lapsed', 'delay_over') and s.for_how_long > %s * interval '1 ms'
 order by s.lane_id, s.since limit 20"""
_LATE = """
select count(*) as n, extract(epoch from max(s.for_how_long)) * 1000 as late_ms
  from ff_v_stuck s where s.kind = %s and s.for_how_long > %s * interval '1 ms'"""
_PUT_OFF = "select s.lane_id, s.waiting, s.waits_for, s.what_to_do from ff_v_stuck s where s.kind = 'put_off'"
_LATE_KINDS = {"suspension_overdue": "timed-out suspensions", "not_dispatched": "flows with ended members"}


def check(context: CheckContext) -> Iterator[Finding]:
    if not context.installed():
        return
    late = context.thresholds.late_ms
    for row in context.rows(_READY, late):
        lane = row["lane_id"]
        workers = "live workers do not claim it: do they offer the required capabilities?"
        yield Finding(
            f"work on lane {lane} has waited {duration(float(row['late_ms']))} for a worker; "
            + (workers if row["served"] else "no live worker serves the lane"),
            "it will not run",
            (
                f"pyff ls --lane {shlex.quote(lane)} --state waiting",
                "start a worker that serves the lane: pyff worker --help",
            ),
        )
    for row in context.rows(_DUE, late):
        what = f"the lease of {row['worker_instance_id']}" if row["leased"] else "a delay"
        yield Finding(
            f"{what} on lane {row['lane_id']} ended {duration(float(row['late_ms']))} ago and no worker has claimed "
            "the work",
            "no worker claims from the lane, and maintenance does not run; either would make it claimable",
            ("start a worker that serves the lane: pyff worker --help", "pyff maintain"),
        )
    for row in context.rows(_PUT_OFF):
        yield Finding(
            f"{row['waiting']} executions on lane {row['lane_id']} wait for {row['waits_for']}",
            "they are put off repeatedly: the code of the workers on this lane cannot run them",
            (row["what_to_do"],),
        )
    for kind, what in _LATE_KINDS.items():
        row = context.rows(_LATE, kind, late)[0]
        if row["n"]:
            yield Finding(
                f"{row['n']} {what} have not been processed for up to {duration(float(row['late_ms']))}",
                "work that waits for them does not continue; maintenance processes them",
                ("pyff maintain",),
            )
