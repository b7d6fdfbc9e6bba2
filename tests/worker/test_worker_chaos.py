"""Real workers are killed, frozen beyond their leases and cut off by a restart of the server, while they work.

By the record every task completes exactly once, and what was acknowledged to a worker is what is stored.
PYFF_CHAOS_TASKS=2000 is the long version.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from pyff import Engine
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, cluster, find, places, postmaster, temporary
from tests.sql import table, violations
from tests.worker.task_worker import nap

TASKS = int(os.environ.get("PYFF_CHAOS_TASKS", "700"))
WORKERS = 3
LEASE_S = 1.5
ROOT = Path(__file__).parents[2]
SETTINGS = {"fsync": False, "synchronous_commit": True, "full_page_writes": False, "max_connections": 100}
SETTINGS["search_path"] = "public, ff"  # the test looks at tables


@pytest.fixture
def server():
    """A server of this test's own: it is going to crash. What is committed the system keeps, which does not."""
    with temporary(**SETTINGS) as own:
        migrate(own.dsn)
        yield own


class Crew:
    """Worker processes, and the logs that all of them have written."""

    def __init__(self, dsn: str, directory: Path) -> None:
        self._dsn = dsn
        self._directory = directory
        self._count = 0
        self.members = [self._start() for _ in range(WORKERS)]

    def _start(self) -> subprocess.Popen[bytes]:
        self._count += 1
        command = [
            sys.executable,
            "-m",
            "tests.worker.task_worker",
            self._dsn,
            self._directory / f"{self._count}.log",
        ]
        return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, number: int) -> None:
        self.members[number].kill()
        self.members[number].wait()
        self.members[number] = self._start()

    def revive(self) -> None:
        """Restarts workers like a supervisor: a worker that finds no server at its start exits."""
        self.members = [member if member.poll() is None else self._start() for member in self.members]

    def lines(self) -> list[list[str]]:
        found = []
        for log in self._directory.glob("*.log"):
            # The last line of a killed process may be torn.
            found += [
                json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")
            ]
        return found

    def stop(self) -> set[int]:
        for member in self.members:
            member.send_signal(signal.SIGCONT)
            member.terminate()
        return {member.wait(90) for member in self.members}

    def end(self) -> None:
        for member in self.members:
            member.kill()
            member.wait()


@pytest.mark.slow("kills processes")
def test_every_task_completes_once_whatever_dies(server, tmp_path):
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    with Engine(server.dsn) as engine:
        nap.enqueue_many([(n, chance.randint(5, 50)) for n in range(TASKS)], conn=engine)
    crew = Crew(server.dsn, tmp_path)
    try:
        done_by(server, TASKS // 10)
        for _ in range(2):
            crew.kill(chance.randrange(WORKERS))
            time.sleep(chance.uniform(0.05, 0.2))
        victim = chance.randrange(WORKERS)
        done_by(server, TASKS // 4)
        frozen, since = crew.members[victim], time.monotonic()
        frozen.send_signal(signal.SIGSTOP)
        done_by(server, TASKS // 3)
        restart(server)
        crew.revive()
        back, before = time.monotonic(), completed(server)
        done_by(server, before + 1)
        after_restart = time.monotonic() - back
        done_by(server, TASKS // 2)
        crew.kill((victim + 1) % WORKERS)
        killed = time.monotonic()
        time.sleep(max(0.0, since + 2 * LEASE_S - time.monotonic()))
        frozen.send_signal(signal.SIGCONT)
        done_by(server, TASKS)
        recovered = time.monotonic() - killed
        assert crew.stop() <= {0, -signal.SIGTERM}, f"seed {seed}"  # the latter: it had not begun yet
    finally:
        crew.end()
    print(f"\n{TASKS} tasks; first completion {after_restart:.2f} s after the server was back,", end=" ")
    print(f"all done {recovered:.2f} s after the last kill at half of them (leases of {LEASE_S} s)")
    check_run(server, crew.lines())


def check_run(server: TemporaryServer, lines: list[list[str]]) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as db:
        assert violations(db) == []
        states = table(db, "select public_state, count(*) as n from ff_exec_core group by 1")
        assert states == [{"public_state": "completed", "n": TASKS}]
        once = """select count(*) as n from (
                     select execution_id from ff_attempt where outcome = 'success' group by 1 having count(*) = 1) x"""
        assert table(db, once) == [{"n": TASKS}]
        events = "select count(*) as n, count(distinct execution_id) as d from ff_event where family = 'completion'"
        assert table(db, events) == [{"n": TASKS, "d": TASKS}]
        stored = table(
            db,
            """select (ff_handle_encode('{fp:' || e.partition_key || '}:' || e.execution_id, a.attempt_index,
                                        a.lease_id, a.lease_epoch, a.attempt_id)) as handle,
                      convert_from(a.result, 'UTF8') as result
                 from ff_attempt a join ff_exec_core e using (execution_id) where a.release_op = 'complete'""",
        )
        by_handle = {row["handle"]: row["result"] for row in stored}
        acknowledged = {handle: result for outcome, handle, result in lines if outcome == "complete"}
        assert acknowledged
        assert {handle: by_handle.get(handle) for handle in acknowledged} == acknowledged
        refused = {handle for outcome, handle, _ in lines if outcome == "lost"}
        print(f"{len(refused)} stale writers were refused")
        assert not refused & by_handle.keys()  # a writer that was refused has left no result
        assert table(
            db, "select count(*) > 0 as reclaimed from ff_attempt where attempt_type = 'reclaim'"
        ) == [{"reclaimed": True}]


def completed(server: TemporaryServer) -> int:
    with psycopg.connect(server.dsn, autocommit=True) as db:
        return table(db, "select count(*) as n from ff_exec_core where public_state = 'completed'")[0]["n"]


def done_by(server: TemporaryServer, tasks: int, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while (n := completed(server)) < tasks:
        assert time.monotonic() < end, f"{n} of {tasks} after {seconds} s"
        time.sleep(0.02)


def restart(server: TemporaryServer) -> None:
    """An immediate stop, as after a crash, and a start."""
    running = postmaster.read_pid_file(server.data)
    assert running is not None
    os.kill(running.pid, signal.SIGQUIT)
    end = time.monotonic() + 90
    while Path(f"/proc/{running.pid}").exists() or postmaster.processes(server.data):
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.3)
    settings = {
        **SETTINGS,
        "listen_addresses": "",
        "port": places.SOCKET_PORT,
        "unix_socket_directories": str(server.directory),
    }
    cluster.start(server.data, server.log, find(), settings)
