"""Ten workers and `pyff maintain` on one database: each tick has one execution, and it is run.

The clock of the engine is stopped, and moved by the test: through both changes of the clocks of Berlin, a crash of the
server in the middle of firing, and an hour without a claim or a tick.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime

import psycopg
import pytest

from pyff import App, Ctx, Engine, Worker
from pyff.migrate import migrate
from pyff.postgres import temporary
from pyff.testing.clock import freeze
from tests.schedules.oracle import utc
from tests.schedules.test_server_crash import connected, survived
from tests.sql import table, violations

MINUTE = 60_000
QUARTER = 15 * MINUTE
HOUR = 4 * QUARTER
NIGHTS = {
    # From half an hour before midnight UTC on; when 02:30 in Berlin is: right after the gap, or the first time.
    "spring": (utc(2026, 3, 28, 23) + 2 * QUARTER, utc(2026, 3, 29, 1)),
    "autumn": (utc(2026, 10, 24, 23) + 2 * QUARTER, utc(2026, 10, 25, 0) + 2 * QUARTER),
}
STEPS = 9  # quarters of an hour, one by one; the clocks change within them

app = App(lane="cron")


@app.task()
def tick(ctx: Ctx, name: str) -> int | None:
    return ctx.scheduled_for_ms


@pytest.mark.slow("waits for real time")
def test_each_tick_is_one_execution_with_ten_workers_and_maintenance():
    with ExitStack() as stack:
        server = stack.enter_context(
            temporary(synchronous_commit=True, max_connections=150, search_path="public, ff")
        )
        migrate(server.dsn)
        db = connected(server.dsn)
        for _ in range(10):
            stack.enter_context(Worker(app, server.dsn, slots=2, poll_s=0.2, lease_ttl_ms=60_000))
        maintain = [sys.executable, "-m", "pyff", "maintain", "--every", "0.1", "--dsn", server.dsn]
        process = subprocess.Popen(maintain, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait, 30)
        stack.callback(process.terminate)
        for night, (start, half_past_two) in NIGHTS.items():
            freeze(db, start)
            wanted: Counter[tuple[str, int]] = Counter()
            names = declare(server.dsn, night)
            for step in range(1, STEPS + 1):
                now = start + step * QUARTER
                freeze(db, now)
                wanted += Counter((f"{night} {policy}", now) for policy in ("all", "latest", "skip"))
                wanted += Counter([(f"{night} hourly", now)] if now % HOUR == 0 else [])
                wanted += Counter([(f"{night} nightly", now)] if now == half_past_two else [])
                if step == 3:  # some have fired, some are about to
                    kill_one(db)
                    db = survived(db, server.dsn)
                # A claim whose answer was lost in the crash is taken over when its lease is over: after the next step.
                completed(db, night, wanted, ended=step != 3)
            # An hour without a tick, and seven minutes: four quarters are due, the last of them is late too.
            quarters = [start + (STEPS + n) * QUARTER for n in range(1, 5)]
            freeze(db, quarters[-1] + 7 * MINUTE)
            wanted += Counter((f"{night} all", quarter) for quarter in quarters)
            wanted += Counter([(f"{night} latest", quarters[-1])])
            wanted += Counter((f"{night} hourly", q) for q in quarters if q % HOUR == 0)
            completed(db, night, wanted)
            for name in names:
                db.execute("select ff_delete_schedule(%s)", [name])
        assert process.poll() is None


def declare(dsn: str, night: str) -> list[str]:
    """One schedule of each kind, all with the same task."""
    app.schedules.clear()
    for policy in ("all", "latest", "skip"):
        tick.schedule(f"{night} {policy}", policy, every_ms=QUARTER, catch_up=policy)
    for name, cron in (("hourly", "@hourly"), ("nightly", "30 2 * * *")):
        tick.schedule(f"{night} {name}", name, cron=cron, time_zone="Europe/Berlin", catch_up="all")
    with Engine(dsn) as engine:
        return list(app.sync_schedules(engine))


def completed(
    db: psycopg.Connection, night: str, wanted: Counter[tuple[str, int]], *, ended: bool = True
) -> None:
    """Waits until these executions are there and have ended, and looks that there are no others."""
    end = time.monotonic() + 60
    while True:
        found = table(
            db,
            """select i.tags ->> 'schedule.id' as name, (i.tags ->> 'schedule.fire_at_ms')::bigint as tick,
                      c.public_state as state
                 from ff_exec_core c join ff_exec_input i using (execution_id)
                where starts_with(i.tags ->> 'schedule.id', %s)""",
            night,
        )
        fired = Counter((row["name"], row["tick"]) for row in found)
        if fired == wanted and (not ended or {row["state"] for row in found} == {"completed"}):
            assert violations(db) == []
            return
        assert not fired - wanted, {(name, _time(tick)) for name, tick in fired - wanted}
        assert time.monotonic() < end, {(name, _time(tick)) for name, tick in wanted - fired}
        time.sleep(0.01)


def kill_one(db: psycopg.Connection) -> None:
    """The server notices, ends all connections and recovers."""
    (pid,) = db.execute(
        "select pid from pg_stat_activity where application_name = 'pyff-worker' limit 1"
    ).fetchone()
    os.kill(pid, signal.SIGKILL)


def _time(tick: int) -> str:
    return datetime.fromtimestamp(tick / 1000, UTC).isoformat()
