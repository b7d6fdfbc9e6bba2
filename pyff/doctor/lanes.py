"""Does work wait on lanes that reject claims?"""

import shlex
from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, duration

CAP = 10_000

_HELD = """
select l.lane_id, l.state, l.state_reason, w.waiting,
       t.now_ms - (extract(epoch from l.state_changed_at) * 1000)::bigint as since_ms
  from ff_v_lane l
 cross join (select ff_now_ms()) t(now_ms)
 cross join lateral (
       select count(*) as waiting
         from (select from ff_v_execution e where e.ready_on = l.lane_id limit %s) x) w
 where l.state in ('paused', 'disabled') and w.waiting > 0
 order by w.waiting desc, l.lane_id limit 20"""


def check(context: CheckContext) -> Iterator[Finding]:
    if not context.installed():
        return
    for row in context.rows(_HELD, CAP):
        number = f"{row['waiting']}{'+' if row['waiting'] >= CAP else ''}"
        reason = f" ({row['state_reason']})" if row["state_reason"] else ""
        yield Finding(
            f"lane {row['lane_id']} has been {row['state']} for {duration(row['since_ms'])}{reason} and {number} "
            "executions wait on it",
            "no worker can claim them until the lane is resumed; their deadlines continue",
            (f"pyff lane resume {shlex.quote(row['lane_id'])}",),
        )
