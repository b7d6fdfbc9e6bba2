"""Workers die by SIGKILL at any moment: nothing acknowledged is lost, and the invariants hold."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sql import table, violations

pytestmark = [pytest.mark.once, pytest.mark.programs]

SECONDS = float(os.environ.get("PYFF_CHAOS_SECONDS", "8"))
PATIENCE = 60
WORKERS = 4
ROOT = Path(__file__).parents[2]


@pytest.mark.slow("kills processes")
def test_a_run_with_killed_workers_leaves_a_sound_database(db, dsn, tmp_path):
    logs: list[Path] = []

    def start() -> subprocess.Popen[bytes]:
        logs.append(tmp_path / f"{len(logs)}.log")
        command = [sys.executable, "-m", "tests.executions.killed_client", dsn, str(len(logs)), str(logs[-1])]
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)

    def acknowledgements() -> int:
        return sum(len(log.read_bytes().splitlines()) for log in logs if log.exists())

    workers = [start() for _ in range(WORKERS)]
    own = {n: logs[n] for n in range(WORKERS)}
    kills = 0
    try:
        began = time.monotonic()
        # On a busy machine it takes longer until enough has happened.
        while (spent := time.monotonic() - began) < SECONDS or (
            spent < SECONDS + PATIENCE and (kills < SECONDS or acknowledgements() <= SECONDS)
        ):
            time.sleep(random.uniform(0.05, 0.4))
            if spent >= SECONDS and kills >= SECONDS:
                continue  # enough kills; on a slow machine, more would keep the workers from completing anything
            victim = random.randrange(WORKERS)
            if not own[victim].exists() and random.random() < 0.9:
                continue  # has not done anything yet: mostly let it get there
            # A worker that ended by itself met an answer that no client may get: its traceback says which.
            assert workers[victim].poll() is None, workers[victim].communicate()[1].decode()
            workers[victim].send_signal(signal.SIGKILL)
            workers[victim].wait()
            workers[victim] = start()
            own[victim] = logs[-1]
            kills += 1
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    settle(db)
    assert violations(db) == []

    acknowledged = {}
    for log in logs:
        for line in log.read_text().splitlines() if log.exists() else ():
            handle, result = json.loads(line)
            assert handle not in acknowledged, "two completions of one lease were acknowledged"
            acknowledged[handle] = bytes.fromhex(result)
    stored = {
        row["handle"]: row["result"]
        for row in table(
            db,
            """
            select a.result, ff__encode_handle(e.partition_key, e.execution_id, a.attempt_index, a.release_lease_id,
                                               a.release_lease_epoch, a.attempt_id) as handle
              from ff_attempt a join ff_exec_core e using (execution_id) where a.release_op = 'complete'
            """,
        )
    }
    assert {handle: stored.get(handle) for handle in acknowledged} == acknowledged
    assert kills >= SECONDS
    assert len(acknowledged) > SECONDS


def settle(db) -> None:
    """Until the server has noticed that the clients of the killed workers are gone."""
    query = (
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    )
    while db.execute(query).fetchone()[0]:
        time.sleep(0.05)
