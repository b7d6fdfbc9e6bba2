"""A worker that died is noticed by its session's end; one that lives is not taken for dead."""

import threading
import time

import pytest

from pyff import Worker
from pyff.worker import peers as module
from pyff.worker.link import Link
from pyff.worker.peers import Peers
from pyff.worker.statements import HOLD
from tests.pgbouncer import pooled
from tests.sql import create, one, rows, table, violations
from tests.worker.conftest import until

OF = " and hashtextextended('pyff worker ' || %s, 0) = (l.classid::bigint << 32) | l.objid::bigint"
HOLDERS = """
    select l.pid from pg_locks l
     where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted
       and l.database = (select d.oid from pg_database d where d.datname = current_database())
"""


@pytest.fixture
def register(engine, dsn, connect):
    """Registers workers, each with a session that holds its lock, and tells the sessions."""

    def register(*names):
        sessions = {}
        for name in names:
            instance = {"instance_id": "session-" + name}
            sessions[name] = connect()
            assert sessions[name].execute(HOLD, instance).fetchone() == (True,)
            engine.register_worker("host", instance["instance_id"], ["default"])
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


def holders(db, worker):
    return [row["pid"] for row in table(db, HOLDERS + OF, worker.instance_id)]


def take(db, instance):
    worker = {"worker_id": "host", "worker_instance_id": "session-" + instance}
    return one(db, "ff_claim", lane_id="default", lease_ttl_ms=60_000, **worker)


def registered(db):
    return [row["worker_instance_id"].removeprefix("session-") for row in rows(db, "ff_list_workers")]


@pytest.fixture
def pair(register, watcher, connect):
    """a looks at b, whose session is given."""
    db = connect()
    session = register("a", "b")["b"]
    pid = session.info.backend_pid
    peers = watcher("a")
    peers.look()

    def end():
        session.close()
        until(lambda: not table(db, "select from pg_stat_activity where pid = %s", pid))

    return db, peers, end


def test_leases_of_a_worker_whose_session_ended_are_revoked_after_a_while(pair, monkeypatch):
    db, peers, end = pair
    eid = create(db)
    assert take(db, "b")
    end()
    peers.look()
    assert registered(db) == ["a", "b"]
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    peers.look()
    assert registered(db) == ["a"]
    found = one(db, "ff_describe_execution", execution_id=eid)
    assert (found["ownership_state"], found["lease_revoke_reason"]) == ("lease_revoked", "worker_dead")
    assert take(db, "a")["execution_id"] == eid
    assert violations(db) == []


def test_as_long_as_there_are_heartbeats_it_lives_without_the_lock(pair, monkeypatch, engine):
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.2)
    end()
    for _ in range(8):
        assert engine.heartbeat_worker("session-b").outcome == "refreshed"
        peers.look()
        time.sleep(0.1)
    assert registered(db) == ["a", "b"]
    time.sleep(0.2)
    peers.look()
    assert registered(db) == ["a"]


def test_a_worker_that_holds_its_lock_again_lives(pair, monkeypatch, connect):
    db, peers, end = pair
    end()
    peers.look()
    again = connect()
    again.execute(HOLD, {"instance_id": "session-b"})
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    peers._bury("session-b")
    for _ in range(3):
        peers.look()
    assert registered(db) == ["a", "b"]


def test_a_worker_that_holds_no_lock_by_its_name_is_left_to_its_leases(
    register, watcher, connect, monkeypatch, engine
):
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    register("a")
    engine.register_worker(worker_id="host", worker_instance_id="b", lanes=["default"])
    peers = watcher("a")
    for _ in range(3):
        peers.look()
    assert registered(connect()) == ["b", "a"]


def test_who_has_lost_its_own_session_waits_for_others_to_come_back(pair, monkeypatch):
    """After a crash of the server nobody holds a lock, and all are on their way back."""
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    end()
    peers._link.drop()
    for _ in range(3):
        peers.look()
    assert registered(db) == ["a", "b"]
    peers._trust_from = 0
    peers.look()
    assert registered(db) == ["a"]


def test_each_looks_at_the_few_that_come_next_and_the_list_is_a_ring(db, register, watcher, monkeypatch):
    monkeypatch.setattr(module, "NEIGHBOURS", 3)
    monkeypatch.setattr(module, "PAGE", 2)
    for session in register(*"abcdef").values():
        session.execute("select pg_advisory_unlock_all()")
    for name, near in {"a": "bcd", "d": "aef", "e": "abf", "f": "abc"}.items():
        peers = watcher(name)
        peers.look()
        assert sorted(peers._suspects) == [f"session-{n}" for n in near], name
    monkeypatch.setattr(module, "NEIGHBOURS", 20)
    peers.look()
    assert len(peers._suspects) == 5


def test_work_of_the_dead_that_somebody_holds_is_tried_again(pair, monkeypatch, connect, caplog):
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    monkeypatch.setattr(module, "PATIENCE_MS", 50)
    eid = create(db)
    take(db, "b")
    end()
    with connect(autocommit=False) as other:
        other.execute("select from ff_exec_core where true for update")
        peers.look()
        assert "somebody holds its work" in caplog.text
        other.rollback()
    peers._bury("session-b")
    assert registered(db) == ["a"]
    assert one(db, "ff_describe_execution", execution_id=eid)["ownership_state"] == "lease_revoked"


def test_one_of_those_who_noticed_does_it(pair, watcher, connect, monkeypatch, caplog):
    db, peers, end = pair
    monkeypatch.setattr(module, "GRACE_S", 0.0)
    end()
    with connect(autocommit=False) as other:
        other.execute(
            "select pg_advisory_xact_lock(hashtextextended('pyff worker session-b', 0))"
        )  # is at it
        peers._bury("session-b")
        assert registered(db) == ["a", "b"]
        other.rollback()
    peers._bury("session-b")
    peers._bury("session-b")
    assert registered(db) == ["a"]
    assert len(table(db, "select from ff_event where event_type = 'marked_dead'")) == 1


@pytest.mark.parametrize("back", [True, False], ids=["and listens again", "and cannot listen again"])
def test_a_worker_that_loses_the_session_but_lives_keeps_its_work(app, work, db, back):
    go = threading.Event()
    runs = []

    @app.task()
    def patient() -> None:
        runs.append(1)
        go.wait(30)

    first = work(lease_ttl_ms=60_000, slots=1)
    handle = patient.enqueue()
    until(lambda: runs)
    second = work(lease_ttl_ms=60_000, slots=1)
    until(lambda: second._ticker._peers._session)
    if not back:
        first._listener._dsn = "host=/nowhere"
    (pid,) = holders(db, first)
    db.execute("select pg_terminate_backend(%s)", [pid])
    until(lambda: holders(db, first) != [pid])
    time.sleep(module.GRACE_S + 2)  # so long as the other would need to take it for dead
    assert first._listener.holding is back
    go.set()
    handle.result(30)
    assert runs == [1]
    assert table(db, "select from ff_event where event_type in ('marked_dead', 'revoked')") == []


def test_behind_a_pooler_no_lock_is_held(app, dsn, db):
    with pooled(dsn) as through:
        worker = Worker(app, through, prepare=False, listen_dsn=through, lanes=["default"])
        with worker:
            until(lambda: worker._listener.listening)
            time.sleep(1.5)
            assert not worker._listener.holding
            assert table(db, HOLDERS) == []


def test_the_lock_is_given_back_at_the_end(app, work, db):
    worker = work(lanes=["default"])
    until(lambda: worker._listener.holding)
    assert len(table(db, HOLDERS)) == 1
    worker.stop()
    until(lambda: not table(db, HOLDERS))
    assert registered(db) == []
