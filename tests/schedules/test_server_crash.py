"""The server dies and recovers while ten connections fire: no tick is lost, none has two executions."""

import os
import signal
import threading
import time

import psycopg
import pytest

from pyff.migrate import migrate
from pyff.postgres import temporary
from tests.conftest import Clock
from tests.schedules.oracle import utc
from tests.sql import claim, one, table, violations

HOUR = 3_600_000
NOON = utc(2026, 10, 24, 12)  # the clocks of Berlin go back in the night
HOURS = 40
PATIENCE = 60


def connected(dsn):
    """A connection, as soon as the server takes one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return psycopg.connect(dsn, autocommit=True)
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "the server does not come back"
            time.sleep(0.02)


def survived(conn, dsn):
    """A connection after the crash: before this one is cut, the server may still take new ones only to end them."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            conn.execute("select 1")
        except psycopg.OperationalError:
            conn.close()
            return connected(dsn)
    raise AssertionError("the server did not notice that one of its processes was killed")


def work(dsn, over, failures):
    try:
        conn = connected(dsn)
        while not over.is_set():
            try:
                one(conn, "ff_fire_schedules", limit=2)
                claim(conn, lease_ttl_ms=86_400_000)
            except psycopg.OperationalError:
                conn.close()
                conn = connected(dsn)
        conn.close()
    except BaseException as failure:
        failures.append(failure)


@pytest.mark.slow("kills processes")
def test_each_tick_has_one_execution_across_a_crash_of_the_server():
    # Commits must survive the crash of the processes; that of the machine is not played.
    with temporary(synchronous_commit=True, search_path="public, ff") as server:
        migrate(server.dsn)
        db = connected(server.dsn)
        clock = Clock(db)
        clock.set(NOON)
        for schedule_id, cron in (("hourly", "@hourly"), ("nightly", "30 2 * * *")):
            one(
                db,
                "ff_create_schedule",
                schedule_id=schedule_id,
                lane_id="default",
                cron=cron,
                time_zone="Europe/Berlin",
                catch_up="all",
            )
        over, failures = threading.Event(), []
        threads = [threading.Thread(target=work, args=(server.dsn, over, failures)) for _ in range(10)]
        for thread in threads:
            thread.start()
        try:
            for hour in range(1, HOURS + 1):
                db.execute("update test_clock set frozen_ms = %s", [NOON + hour * HOUR])
                time.sleep(0.02)  # so that ticks are fired one by one, not all at the end
                if hour == HOURS // 2:
                    # One server process killed: the postmaster ends all others and recovers.
                    victim = table(
                        db,
                        "select pid from pg_stat_activity where pid <> pg_backend_pid() and datname is not null",
                    )[0]["pid"]
                    os.kill(victim, signal.SIGKILL)
                    db = survived(db, server.dsn)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert failures == []
        while one(db, "ff_fire_schedules")["processed"]:
            pass
        found = table(
            db,
            "select tags ->> 'schedule.id' as id, tags ->> 'schedule.fire_at_ms' as tick from ff_exec_input",
        )
        ticks = sorted((row["id"], int(row["tick"])) for row in found)
        assert ticks == [
            *(("hourly", NOON + hour * HOUR) for hour in range(1, HOURS + 1)),
            ("nightly", utc(2026, 10, 25, 0, 30)),
            ("nightly", utc(2026, 10, 26, 1, 30)),
        ]
        assert violations(db) == []
        db.close()
