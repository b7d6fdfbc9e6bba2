"""The page on deploying: its units start what exists, and its numbers of connections are measured."""

import contextlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

import psycopg
import pytest
from psycopg_pool import PoolClosed

from pyff import App, Ctx, Engine, Worker
from pyff.cli import parser
from pyff.doctor.connections import PER_WORKER
from tests.docs.blocks import ROOT, blocks
from tests.worker.conftest import until

PAGE = ROOT / "docs" / "deploying.md"
UNIT, MANIFEST = blocks(PAGE, "text")
OWN = PER_WORKER
SESSIONS = """
    select count(*) from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and application_name like %s
       and pid <> pg_backend_pid()
"""


@pytest.fixture
def count(dsn):
    with psycopg.connect(dsn, autocommit=True, application_name="counting") as conn:
        yield lambda name="pyff%": conn.execute(SESSIONS, [name]).fetchone()[0]


def test_the_units_start_commands_that_exist_and_wait_longer_than_the_worker():
    (start,) = re.findall(r"^ExecStart=\S*/(pyff .*)$", UNIT, re.M)
    unit = parser().parse_args(shlex.split(start)[1:])
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.M)[1]) >= unit.drain_s + 30
    migrate, worker = re.findall(r"command: \[pyff, (.*)\]", MANIFEST)
    parser().parse_args(migrate.split(", "))
    container = parser().parse_args([word.strip('"') for word in worker.split(", ")])
    assert int(re.search(r"terminationGracePeriodSeconds: (\d+)", MANIFEST)[1]) >= container.drain_s + 30


@pytest.mark.parametrize(
    ("options", "own"), [({}, OWN), ({"maintain": False}, OWN - 1), ({"prepare": False}, OWN - 1)]
)
@pytest.mark.own_session("counts the connections of the server")
def test_a_worker_has_its_own_connections_and_those_of_its_tasks(dsn, count, options, own):
    app, go = App(), threading.Event()

    @app.task()
    def task(ctx: Ctx, n: int) -> int:
        go.wait(60)
        return ctx.step("double", lambda: 2 * n)

    with Worker(app, dsn, slots=4, **options), Engine(dsn, min_size=1, max_size=1) as engine:
        handles = [task.enqueue(n, conn=engine) for n in range(8)]
        go.set()
        assert [handle.result(60) for handle in handles] == [2 * n for n in range(8)]
        until(lambda: count("pyff-worker") == own)
        assert 1 <= count("pyff") - 1 <= 4  # the engine of this test has one


@pytest.mark.own_session("counts the connections of the server")
def test_an_engine_has_one_more_while_it_follows(dsn, count):
    with Engine(dsn) as engine:
        engine.ping()
        assert count() == 1

        def follow() -> None:
            with contextlib.suppress(PoolClosed):
                next(engine.subscribe("completion", after="now"), None)

        reader = threading.Thread(target=follow)
        reader.start()
        until(lambda: count() == 2)
    reader.join(60)


@pytest.mark.parametrize(
    ("command", "connections"),
    [("maintain --every 60", 1), ("top --interval 1m", 1), ("events --follow", 2)],
)
@pytest.mark.own_session("counts the connections of the server")
def test_a_command_has_one_connection_and_two_while_it_follows(dsn, count, command, connections):
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "pyff", *command.split(), "--dsn", f"{dsn} application_name=counted"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            until(lambda: count("counted") == connections)
            time.sleep(0.3)
            assert count("counted") == connections
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
