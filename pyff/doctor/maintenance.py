"""Does maintenance run, and does every step succeed?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, duration, first_few, run_sql

_STEPS = """
select m.name, m.enabled, m.last_run_at is null as never, m.failing_rows, m.example_error,
       extract(epoch from m.run_interval)::float8 * 1000 as interval_ms,
       t.now_ms - (extract(epoch from m.idle_since) * 1000)::bigint as silent_ms
  from ff_v_maintenance m cross join (select ff_now_ms()) t(now_ms)
 order by m.name"""


def check(context: CheckContext) -> Iterator[Finding]:
    if not context.has("ff_v_maintenance"):
        return
    late = context.thresholds.late_ms
    steps = context.rows(_STEPS)
    enabled = [row for row in steps if row["enabled"]]
    if enabled and all(row["silent_ms"] > late for row in enabled):
        silent = min(row["silent_ms"] for row in enabled)
        ever = (
            "has never run" if all(row["never"] for row in enabled) else f"has not run for {duration(silent)}"
        )
        yield Finding(
            f"maintenance {ever}",
            "timeouts and deadlines take effect late, budgets are not reset, and nothing is deleted: tables grow",
            (
                "pyff maintain  # permanently, under a supervisor",
                run_sql("select cron.schedule('pyff', '1 second', 'select ff_tick()')", "or by pg_cron"),
            ),
        )
    else:
        slow = [r["name"] for r in enabled if r["silent_ms"] > max(late, 20 * r["interval_ms"])]
        if slow:
            yield Finding(
                f"steps of maintenance have not run for a long time, while others have: {first_few(slow)}",
                "their rows are not processed",
                tuple(
                    run_sql(f"select * from ff_tick(p_only => '{{{name}}}', p_force => true)")  # noqa: S608
                    for name in slow
                ),
            )
    off = [row["name"] for row in steps if not row["enabled"]]
    if off:
        yield Finding(
            f"steps of maintenance are switched off: {first_few(off)}",
            "their rows are not processed",
            tuple(
                run_sql(f"select * from ff_set_reconciler('{name}', p_enabled => true)")  # noqa: S608
                for name in off
            ),
        )
    errors = f"{context.private()}.ff_reconciler_error"
    for row in steps:
        if not row["failing_rows"]:
            continue
        yield Finding(
            f"{row['name']} fails on {row['failing_rows']} rows, for example: {row['example_error']}",
            "they are retried after growing pauses; the work that depends on them does not continue",
            (run_sql(f"select * from {errors} where name = '{row['name']}'"),),  # noqa: S608
        )
