"""Recording from several connections at once, at every isolation level."""

import threading

import psycopg
import pytest

from tests.sql import create, one, refused, rows, take, violations, wait_for_lock

pytestmark = pytest.mark.modes

LEVELS = list(psycopg.IsolationLevel)[1:]


def test_one_name_recorded_by_many_connections_at_once_is_recorded_once(db, connect):
    eid = create(db)
    lease = take(db)
    connections = [connect() for _ in range(6)]
    barrier = threading.Barrier(6)
    answers = []

    def run(conn):
        barrier.wait()
        answers.append(one(conn, "ff_record_step", handle=lease["handle"], name="a", result=b"1"))

    threads = [threading.Thread(target=run, args=(conn,)) for conn in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["outcome"] for answer in answers) == ["already_recorded"] * 5 + ["recorded"]
    assert len({answer["recorded_at_ms"] for answer in answers}) == 1
    assert len(rows(db, "ff_read_steps", execution_id=eid)) == 1


def test_names_recorded_by_many_connections_at_once_are_numbered_without_a_gap(db, connect):
    eid = create(db)
    lease = take(db)
    connections = [connect() for _ in range(5)]
    barrier = threading.Barrier(5)

    def run(n, conn):
        barrier.wait()
        for i in range(20):
            one(conn, "ff_record_step", handle=lease["handle"], name=f"{n}-{i}")

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows(db, "ff_read_steps", execution_id=eid)
    assert [step["cursor"] for step in found] == [str(n) for n in range(1, 101)]
    assert len({step["name"] for step in found}) == 100
    assert violations(db) == []


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name.lower())
def test_a_snapshot_that_misses_a_record_ends_in_a_retry_never_in_a_raw_error(db, connect, level, name):
    """The second transaction took its snapshot before the first recorded."""
    eid = create(db)
    lease = take(db)
    late = connect(autocommit=False)
    late.isolation_level = level
    late.execute("select 1 from ff_step")
    one(db, "ff_record_step", handle=lease["handle"], name="a", result=b"1")
    if level is psycopg.IsolationLevel.READ_COMMITTED:
        answer = one(late, "ff_record_step", handle=lease["handle"], name=name, result=b"1")
        assert answer["outcome"] == ("already_recorded" if name == "a" else "recorded")
    else:
        with pytest.raises(psycopg.errors.SerializationFailure):
            one(late, "ff_record_step", handle=lease["handle"], name=name, result=b"1")
        late.rollback()
        answer = one(late, "ff_record_step", handle=lease["handle"], name=name, result=b"1")
        assert answer["outcome"] == ("already_recorded" if name == "a" else "recorded")
    late.commit()
    assert [s["name"] for s in rows(db, "ff_read_steps", execution_id=eid)] == sorted({"a", name})


def test_a_step_that_waits_for_the_execution_is_checked_against_the_new_state(db, connect):
    eid = create(db)
    lease = take(db)
    operator, worker = connect(autocommit=False), connect()
    one(operator, "ff_revoke_lease", execution_id=eid)
    failures = []

    def run():
        try:
            with refused("lease_revoked"):
                one(worker, "ff_record_step", handle=lease["handle"], name="a")
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for_lock(db, worker)
    operator.commit()
    thread.join()
    assert failures == []
    assert rows(db, "ff_read_steps", execution_id=eid) == []


def test_a_step_is_recorded_with_the_callers_own_data_or_not_at_all(db, connect):
    eid = create(db)
    lease = take(db)
    db.execute("create table mine (x int)")
    worker = connect(autocommit=False)
    worker.execute("insert into mine values (1)")
    one(worker, "ff_record_step", handle=lease["handle"], name="a")
    worker.rollback()
    assert rows(db, "ff_read_steps", execution_id=eid) == []
    worker.execute("insert into mine values (2)")
    one(worker, "ff_record_step", handle=lease["handle"], name="a")
    worker.commit()
    assert len(rows(db, "ff_read_steps", execution_id=eid)) == 1
