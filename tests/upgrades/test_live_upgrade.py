"""A later release is applied while workers and clients of this one are at work, and they notice nothing."""

import threading
import time
from collections import Counter

import pytest

from pyff import Engine
from tests.sql import table, violations
from tests.upgrades.releases import later, upgrade

LANE = "live"
UPGRADES = 2
ONE_RETRY = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}


class Life:
    """Clients of this release that submit, work and look without pause, each with its own engine."""

    def __init__(self, dsn):
        self.dsn = dsn
        self.calls = Counter()
        self.errors = []
        self.created = set()
        self.done = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        kinds = [self._produce, self._produce, self.work, self.work, self.work, self._look, self._maintain]
        self._threads = [threading.Thread(target=self._run, args=(kind, n)) for n, kind in enumerate(kinds)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.go_on(50)
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def go_on(self, calls):
        """Returns once that many more executions have been completed."""
        target, until = len(self.done) + calls, time.monotonic() + 300
        while len(self.done) < target and time.monotonic() < until and not self.errors:
            time.sleep(0.01)

    def _run(self, kind, n):
        with Engine(self.dsn, prepare_threshold=[5, None, 0][n % 3], max_size=2) as engine:
            while not self._stop.is_set():
                try:
                    kind(engine, n)
                except Exception as error:
                    self.errors.append(f"{kind.__name__}: {type(error).__name__}: {error}")
                    return
                self.calls[kind.__name__] += 1

    def _produce(self, engine, n):
        if len(self.created) > len(self.done) + 200:  # not more than can be done at the end
            time.sleep(0.01)
            return
        payload = f"{n} {self.calls['_produce']} {time.monotonic_ns()}"
        submission = {"payload": payload.encode(), "idempotency_key": payload, "policy": ONE_RETRY}
        made = engine.create_execution(LANE, **submission)
        again = engine.create_execution(LANE, **submission)
        assert (made.outcome, again.outcome) == ("created", "duplicate")
        assert made.execution_id == again.execution_id
        with self._lock:
            self.created.add(made.execution_id)

    def work(self, engine, n):
        found = engine.claim(LANE, f"w{n}", f"w{n}-1", lease_ttl_ms=60_000)
        if found is None:
            time.sleep(0.002)
            return
        engine.renew(found.handle)
        if found.attempt_index == 0 and found.payload[-1] % 4 == 0:
            engine.fail(found.handle, reason="again")
            return
        answer = b"done " + found.payload
        assert engine.complete(found.handle, result=answer).outcome == "completed"
        with self._lock:
            assert found.execution_id not in self.done
            self.done[found.execution_id] = answer

    def _look(self, engine, _):
        for execution_id in list(self.created)[-5:]:
            assert engine.describe_execution(execution_id).lane_id == LANE
        engine.list_executions(limit=20)

    def _maintain(self, engine, _):
        engine.tick()
        time.sleep(0.02)


@pytest.fixture
def releases(tmp_path):
    return lambda number: later(tmp_path / str(number), number)


@pytest.mark.slow("long run")
def test_live_clients_notice_nothing_of_an_upgrade(db, dsn, releases):
    with Life(dsn) as life:
        for number in range(1, UPGRADES + 1):
            upgrade(dsn, releases(number), number)
            life.go_on(50)
    assert life.errors == []
    assert replaced(db) == UPGRADES, "every body is that of the last release"
    finish(dsn, life)
    stored = dict(
        db.execute(
            "select ff__wire_id(e.partition_key, e.execution_id), a.result"
            "  from ff_exec_core e join ff_attempt a using (execution_id) where a.release_op = 'complete'"
        ).fetchall()
    )
    assert life.created <= stored.keys()
    assert life.done == stored
    assert violations(db) == []
    assert db.execute("select count(*) from ff_attempt_past where later is distinct from 7").fetchone() == (
        0,
    )


def replaced(db):
    """The release whose bodies the functions have."""
    found = table(
        db,
        r"""select distinct substring(p.prosrc from '^ -- release (\d+)')::int as n from pg_proc p
             where p.proname like 'ff\_%%' and p.pronamespace in ('public'::regnamespace, 'ff'::regnamespace)""",
    )
    assert len(found) == 1, found
    return found[0]["n"]


def finish(dsn, life):
    """What was left when the clients stopped, by a client of this release on the schema of a later one."""
    with Engine(dsn) as engine:
        until = time.monotonic() + 300
        while life.created - life.done.keys() and time.monotonic() < until:
            life.work(engine, 99)
