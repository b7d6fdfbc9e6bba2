"""Rules about steps and schedules: records do not change, a tick fires once."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tools.verify.facts import Facts
from tools.verify.history import Call

Finding = tuple[str, str]


def steps_are_stored(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """The first record of a step is kept, and returned to all callers."""
    forgotten = {call.args["execution_id"] for call in calls if call.function == "ff_forget_steps"}
    for call in calls:
        if call.function != "ff_record_step" or not call.acknowledged:
            continue
        id, row = facts.fences[call.args["handle"]].execution_id, call.row
        if id in forgotten:
            continue
        stored = facts.steps.get((id, row["name"]))
        if stored is None:
            yield id, f"step {row['name']} of {call.client} was {row['outcome']}, and is not stored"
        elif stored["result"] != row["result"]:
            yield id, f"step {row['name']} differs from the result that {call.client} got"
        if row["outcome"] == "recorded" and row["result"] != call.args.get("result"):
            yield id, f"step {row['name']} differs from what {call.client} sent"


def schedules_fire_once(calls: Sequence[Call], facts: Facts) -> Iterator[Finding]:
    """Every counted tick of a schedule has its execution, and a schedule with catch_up all skips none."""
    paused, deleted = (
        {call.args["schedule_id"] for call in calls if call.function == function and call.error is None}
        for function in ("ff_pause_schedule", "ff_delete_schedule")
    )
    ticks: dict[str, list[int]] = defaultdict(list)
    for row in facts.ticks:
        ticks[row["schedule_id"]].append(row["fire_at_ms"])
    for call in calls:
        fired = call.row.get("execution_id") if call.function == "ff_fire_schedule" else None
        if fired is not None and fired not in facts.executions:
            yield call.args["schedule_id"], f"{call.client} fired it, and {fired} is not stored"
    for schedule in facts.schedules:
        id, seen = schedule["schedule_id"], sorted(ticks[schedule["schedule_id"]])
        if id in deleted:
            continue
        if len(seen) != schedule["fire_count"]:
            yield id, f"fired {schedule['fire_count']} times, and {len(seen)} executions are stored"
        elif seen and schedule["catch_up"] == "all" and schedule["interval_ms"] and id not in paused:
            step = schedule["interval_ms"]
            if seen != list(range(seen[0], schedule["last_fire_at_ms"] + 1, step)):
                yield id, f"skipped some of its ticks from {seen[0]} to {schedule['last_fire_at_ms']}"
