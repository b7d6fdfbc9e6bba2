"""A worker that dies by SIGKILL leaks no slot: there is no counter that it could have left too high."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.quotas.support import limits, policy, under
from tests.sql import claim, take, violations

pytestmark = pytest.mark.slow("kills processes")

ROOT = Path(__file__).parents[2]


def start(dsn, lane, commit):
    command = [sys.executable, "-m", "tests.quotas.worker", dsn, lane, commit]
    worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return worker, worker.stdout.readline().strip()


def kill(worker):
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()


def test_a_killed_workers_slot_is_free_when_its_lease_has_lapsed(db, dsn, clock):
    policy(db, at_once=1)
    eid = under(db, lane="killed")
    other = under(db)
    worker, claimed = start(dsn, "killed", "commit")
    try:
        assert claimed == eid
        assert claim(db) is None
    finally:
        kill(worker)
    assert claim(db) is None
    assert limits(db)["active_concurrency"] == 1
    clock.advance(60_000)
    assert limits(db)["active_concurrency"] == 0
    assert take(db)["execution_id"] == other
    # Its own work is reclaimed only when there is a slot again.
    assert claim(db, lane="killed") is None
    clock.advance(60_000)
    assert take(db, lane="killed")["handle_kind"] == "reclaimed"
    assert violations(db) == []


def test_a_worker_killed_in_mid_claim_leaves_neither_a_lock_nor_a_slot(db, dsn):
    policy(db, at_once=1)
    eid = under(db)
    worker, claimed = start(dsn, "default", "no")
    kill(worker)
    assert claimed == eid
    gone = "select from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()"
    deadline = time.monotonic() + 60
    while db.execute(gone).fetchall() and time.monotonic() < deadline:
        time.sleep(0.05)  # the server has to notice that the client is gone
    assert limits(db)["active_concurrency"] == 0
    assert take(db)["execution_id"] == eid
