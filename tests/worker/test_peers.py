"""A dead worker is detected by the end of its session; a live one is not declared dead."""

import multiprocessing
import os
import threading
import time

import psycopg
import pytest

from pyff import Ctx, TaskCancelled, Worker
from pyff.worker import peers as module
from pyff.worker import renewer, ticker
from pyff.worker.link import Link, RetryPauses
from pyff.worker.peers import Peers
from pyff.worker.statements import TAKE_LOCK
from pyff.worker.ticker import Ticker
from tests.pgbouncer import pooled
from tests.sql import create, one, rows, table, violations
from tests.worker.conftest import nothing, until

HOLDERS = """
    select l.pid from pg_locks l
     where l.locktype = 'advisory' and l.mode = 'ShareLock' and l.granted
       and l.database = (select d.oid from pg_database d where d.datname = current_database())
       and hashtextextended('pyff worker ' || %s, 0) = (l.classid::bigint << 32) | l.objid::bigint
"""


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """The server of these tests may be young."""
    monkeypatch.setattr(module, "RETURN_S", -module.GRACE_S)


@pytest.fixture
def register(engine, connect):
    """Registers workers, each with a session that holds its lock, and tells the sessions."""

    def register(*names):
        sessions = {}
        for name in names:
            sessions[name] = connect()
            sessions[name].execute(TAKE_LOCK, {"instance_id": "session-" + name})
            engine.register_worker("host", "session-" + name, ["default"])
        return sessions

    return register


@pytest.fixture
def watcher(dsn):
    links = []

    def watcher(name):
        links.append(Link(dsn, "maintain"))
        return Peers(links[-1], {"instance_id": "session-" + name, "namespace": "default"})

    yield watcher
    for link in links:
        link.drop()


@pytest.fixture
def pair(register, watcher, connect):
    """a rechecks at b, whose session can be ended."""
    db = connect()
    session = register("a", "b")["b"]
    pid = session.info.backend_pid
    peers = watcher("a")
    peers.check()

    def end():
        session.close()
        until(lambda: not table(db, "select from pg_stat_activity where pid = %s", pid))

    return db, peers, end


def holders(db, worker):
    return [row["pid"] for row in table(db, HOLDERS, worker.instance_id)]


def take(db, instance):
    worker = {"worker_id": "host", "worker_instance_id": "session-" + instance}
    return one(db, "ff_claim", lane_id="default", lease_ttl_ms=60_000, **worker)


def registered(db):
    return [row["worker_instance_id"].removeprefix("session-") for row in rows(db, "ff_list_workers")]


def test_leases_of_a_worker_whose_session_ended_are_revoked_after_a_while(pair, monkeypatch):
    db, peers, end = pair
    eid = create(db)
    assert take(db, "b")
    end()
    peers.check()
    assert registered(db) == ["a", "b"]
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    peers.check()
    assert registered(db) == ["a"]
    found = one(db, "ff_describe_execution", execution_id=eid)
    assert (found["ownership_state"], found["lease_revoke_reason"]) == ("lease_revoked", "worker_dead")
    assert take(db, "a")["execution_id"] == eid
    assert violations(db) == []


def test_a_worker_that_holds_its_lock_again_lives(pair, monkeypatch, connect):
    db, peers, end = pair
    end()
    peers.check()
    again = connect()
    again.execute(TAKE_LOCK, {"instance_id": "session-b"})
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    peers._mark_dead("session-b")
    for _ in range(3):
        peers.check()
    assert registered(db) == ["a", "b"]


def test_a_worker_that_holds_no_lock_by_its_name_is_left_to_its_leases(
    register, watcher, connect, monkeypatch, engine
):
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    register("a")
    engine.register_worker(worker_id="host", worker_instance_id="b", lanes=["default"])
    peers = watcher("a")
    for _ in range(3):
        peers.check()
    assert registered(connect()) == ["b", "a"]


def test_who_has_lost_its_own_session_waits_for_others_to_come_back(pair, monkeypatch):
    """After a crash of the server no worker holds a lock, and all reconnect."""
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    monkeypatch.setattr(module, "RETURN_S", 60.0)
    end()
    peers._link.drop()
    for _ in range(3):
        peers.check()
    assert registered(db) == ["a", "b"]
    monkeypatch.setattr(module, "RETURN_S", 0.0)
    peers._trust_from = 0.0
    peers.check()
    assert registered(db) == ["a"]


def test_no_worker_is_declared_dead_shortly_after_a_server_start(pair, monkeypatch):
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    monkeypatch.setattr(module, "RETURN_S", 1_000_000.0)
    end()
    for _ in range(3):
        peers.check()
    assert registered(db) == ["a", "b"]


def test_each_worker_checks_the_following_ones_and_the_list_is_circular(db, register, watcher, monkeypatch):
    monkeypatch.setattr(module, "NEIGHBOURS", 3)
    monkeypatch.setattr(module, "PAGE", 2)
    for session in register(*"abcdef").values():
        session.execute("select pg_advisory_unlock_all()")
    for name, near in {"a": "bcd", "d": "aef", "e": "abf", "f": "abc"}.items():
        peers = watcher(name)
        peers.check()
        assert sorted(peers._suspects) == [f"session-{n}" for n in near], name
    monkeypatch.setattr(module, "NEIGHBOURS", 20)
    peers.check()
    assert len(peers._suspects) == 5


def test_locked_work_of_a_dead_worker_is_retried(pair, monkeypatch, connect, caplog):
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    monkeypatch.setattr(module, "LOCK_TIMEOUT_MS", 50)
    eid = create(db)
    take(db, "b")
    end()
    with connect(autocommit=False) as other:
        other.execute("select from ff_exec_core where true for update")
        peers.check()
        assert "its leases cannot be revoked" in caplog.text
        other.rollback()
    peers.check()
    assert registered(db) == ["a"]
    assert one(db, "ff_describe_execution", execution_id=eid)["ownership_state"] == "lease_revoked"


def test_one_of_those_who_noticed_does_it(pair, connect):
    db, peers, end = pair
    end()
    with connect(autocommit=False) as other:
        other.execute(
            "select pg_advisory_xact_lock(hashtextextended('pyff worker session-b', 0))"
        )  # is at it
        peers._mark_dead("session-b")
        assert registered(db) == ["a", "b"]
        other.rollback()
    peers._mark_dead("session-b")
    peers._mark_dead("session-b")
    assert registered(db) == ["a"]
    assert len(table(db, "select from ff_event where event_type = 'marked_dead'")) == 1


def test_a_worker_whose_session_was_ended_makes_another_one_and_keeps_its_work(app, work, db, monkeypatch):
    monkeypatch.setattr(module, "GRACE_S", 3600.0)
    go = threading.Event()
    runs = []

    @app.task()
    def waiting() -> None:
        runs.append(1)
        go.wait(90)

    first = work(lease_ttl_ms=60_000, slots=1)
    handle = waiting.enqueue()
    until(lambda: runs)
    second = work(lease_ttl_ms=60_000, slots=1)
    until(lambda: second._ticker._peers._sessions)
    (pid,) = holders(db, first)
    db.execute("select pg_terminate_backend(%s)", [pid])
    until(lambda: holders(db, first) not in ([], [pid]))
    monkeypatch.setattr(module, "GRACE_S", 0.0)  # from here on one look at a free lock would be enough
    for _ in range(2):
        calls = second._links["maintain"].calls
        until(lambda calls=calls: second._links["maintain"].calls > calls + 2)
    go.set()
    handle.result(90)
    assert runs == [1]
    assert table(db, "select from ff_event where event_type in ('marked_dead', 'revoked')") == []


def test_a_session_that_was_ended_is_made_again_before_others_notice(app, work, db):
    """However long its leases are, it rechecks after its session many times in the time that others wait."""
    worker = work(lease_ttl_ms=3_600_000, lanes=["default"])
    pauses, wait = [], worker._renewer._wake.wait
    worker._renewer._wake.wait = lambda seconds: pauses.append(seconds) or wait(seconds)
    (pid,) = holders(db, worker)
    db.execute("select pg_terminate_backend(%s)", [pid])
    until(lambda: holders(db, worker) not in ([], [pid]) and pauses)
    assert max(pauses) <= renewer.CHECK_SESSION_S < module.GRACE_S / 4


def test_behind_a_pooler_no_lock_is_held_and_the_name_says_so(app, dsn, db):
    app.task()(nothing)
    with pooled(dsn) as through, Worker(app, through, prepare=False, lanes=["default"]) as worker:
        until(lambda: registered(db))
        assert registered(db) == [worker.instance_id]
        assert not worker.instance_id.startswith("session-")
        assert holders(db, worker) == []


def test_a_fork_does_not_keep_the_lock(app, work, db):
    worker = work(lanes=["default"])
    (pid,) = holders(db, worker)
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        worker._links["renew"].close_in_child()  # as if the process ended: nothing is said to the server
        until(lambda: pid not in holders(db, worker))
        assert child.is_alive()
    finally:
        child.kill()
        child.join()


def test_a_fork_of_a_fork_keeps_its_own_files(app, work, tmp_path):
    worker = work(lanes=["default"])
    number = worker._links["renew"].connect().fileno()
    kept = tmp_path / "kept"

    def grandchild() -> None:
        os.write(number, b"whole")

    def child() -> None:
        os.dup2(
            os.open(kept, os.O_WRONLY | os.O_CREAT), number
        )  # as a program that closed all it had inherited
        other = context.Process(target=grandchild)
        other.start()
        other.join()

    context = multiprocessing.get_context("fork")
    process = context.Process(target=child)
    process.start()
    process.join()
    assert kept.read_text() == "whole"


def test_a_worker_that_was_taken_for_dead_is_told_as_soon_as_it_is_back(app, work, engine, db):
    told = threading.Event()
    begun = threading.Event()

    @app.task()
    def waiting(ctx: Ctx) -> None:
        begun.set()
        try:
            while ctx.attempt == 0:
                time.sleep(0.01)
        except TaskCancelled:
            told.set()
            raise

    worker = work(lease_ttl_ms=3_600_000)
    handle = waiting.enqueue()
    until(begun.is_set)
    (pid,) = holders(db, worker)
    engine.mark_worker_dead(worker.instance_id, revoke_leases=True)
    assert handle.describe().ownership_state == "lease_revoked" or handle.describe().lease_reclaim_count == 1
    db.execute("select pg_terminate_backend(%s)", [pid])
    until(told.is_set)
    handle.result(90)
    until(lambda: registered(db))


def test_a_connection_that_was_closed_is_made_again(app, work, db):
    worker = work(lanes=["default"])
    (pid,) = holders(db, worker)
    worker._links["renew"]._connection.close()
    until(lambda: holders(db, worker) not in ([], [pid]))


def test_maintenance_continues_without_the_right_to_list_workers(app, work, db, monkeypatch, caplog):
    def refuse(self):
        raise psycopg.errors.InsufficientPrivilege("no")

    monkeypatch.setattr(Peers, "check", refuse)
    worker = work(lanes=["default"])
    before = worker._links["maintain"].calls
    until(lambda: worker._links["maintain"].calls > before + 1)
    assert caplog.text.count("cannot check other workers") == 1


def test_others_are_looked_after_where_maintenance_fails(pair, dsn, monkeypatch):
    db, peers, end = pair
    monkeypatch.setattr(ticker, "TICK", "select 1 / 0")
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    other = Ticker(peers._link, peers, lambda: True, every_s=0.01)
    other._tick_job.pauses = RetryPauses(600.0)
    thread = threading.Thread(target=other.serve)
    thread.start()
    try:
        until(lambda: other._tick_job.pauses.failures)
        end()
        until(lambda: registered(db) == ["a"])
    finally:
        other.stopped.set()
        thread.join()
