"""Workers that register, beat and die at the same time."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.sql import create, one, rows, table, take, violations, wait_for_lock

pytestmark = pytest.mark.modes


def together(count, work):
    """Runs work(n) in `count` threads that start at the same moment; the results in order."""
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def register(conn, worker="w", **args):
    return one(
        conn, "ff_register_worker", worker_id=worker, worker_instance_id="i", lanes=["default"], **args
    )["outcome"]


def worker_events(db):
    return [row["event_type"] for row in table(db, "select * from ff_event order by event_id")]


def test_of_concurrent_first_registrations_one_is_the_first(db, connect):
    conns = [connect() for _ in range(8)]
    for n in range(1, 6):
        got = Counter(together(8, lambda n: register(conns[n])))
        assert got == {"registered": 1, "refreshed": 7}
        assert worker_events(db).count("registered") == n
        one(db, "ff_mark_worker_dead", worker_instance_id="i")


def test_of_concurrent_registrations_of_a_lapsed_worker_one_is_the_first(db, connect, clock):
    clock.freeze()
    conns = [connect() for _ in range(6)]
    register(db, liveness_ttl_ms=10)
    clock.advance(10)
    assert Counter(together(6, lambda n: register(conns[n]))) == {"registered": 1, "refreshed": 5}


def test_of_different_workers_that_want_one_instance_one_gets_it(db, connect):
    conns = [connect() for _ in range(6)]

    def work(n):
        try:
            return register(conns[n], f"w{n}")
        except psycopg.Error as error:
            return error.sqlstate

    assert Counter(together(6, work)) == {"registered": 1, "WF302": 5}
    assert len(rows(db, "ff_list_workers")) == 1


def test_a_registration_survives_a_rival_that_rolls_back(db, connect):
    rival, waiter = connect(autocommit=False), connect()
    assert register(rival) == "registered"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(register, waiter)
        wait_for_lock(db, waiter)
        rival.rollback()
        assert answer.result(90) == "registered"


def test_registering_beating_and_dying_at_once_raise_no_error(db, connect):
    conns = [connect() for _ in range(6)]

    def work(n):
        outcomes = []
        for _ in range(10):
            if n % 3 == 0:
                outcomes.append(register(conns[n]))
            elif n % 3 == 1:
                outcomes.append(one(conns[n], "ff_heartbeat_worker", worker_instance_id="i")["outcome"])
            else:
                outcomes.append(one(conns[n], "ff_mark_worker_dead", worker_instance_id="i")["outcome"])
        return outcomes

    got = Counter(outcome for outcomes in together(6, work) for outcome in outcomes)
    assert got["registered"] == worker_events(db).count("registered")
    assert got["marked"] == worker_events(db).count("marked_dead")
    assert got["registered"] - got["marked"] == len(rows(db, "ff_list_workers"))


def test_concurrent_reports_of_one_death_revoke_each_lease_once(db, connect):
    for _ in range(8):
        create(db)
        take(db)
    conns = [connect() for _ in range(4)]
    got = together(
        4,
        lambda n: one(conns[n], "ff_mark_worker_dead", worker_instance_id="w-1", revoke_leases=True),
    )
    assert sum(row["leases_revoked"] for row in got) == 8
    assert violations(db) == []


def test_a_holder_that_finishes_while_it_is_declared_dead_completes_or_is_revoked(db, connect):
    conns = [connect() for _ in range(2)]
    for _ in range(10):
        create(db)
        handle = take(db)["handle"]

        def work(n, handle=handle):
            if n:
                args = {"worker_instance_id": "w-1", "revoke_leases": True}
                return one(conns[n], "ff_mark_worker_dead", **args)["leases_revoked"]
            try:
                return one(conns[n], "ff_complete", handle=handle)["outcome"]
            except psycopg.Error as error:
                return error.sqlstate

        assert tuple(together(2, work)) in {("completed", 0), ("WF403", 1)}
        rest = rows(db, "ff_claim", lane_id="default", worker_id="x", worker_instance_id="x-1")
        for row in rest:
            one(db, "ff_complete", handle=row["handle"])
    assert violations(db) == []
