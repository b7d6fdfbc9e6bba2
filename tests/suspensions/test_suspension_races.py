"""Two calls on the same suspension: the lock of the execution decides, one wins, the other gets its outcome."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.executions.test_lifecycle_races import together, wait_for_lock
from tests.sql import create, events, execution, one, rows, table, take, violations
from tests.suspensions.support import (
    APPROVAL,
    count,
    deliver,
    expire,
    run,
    seed,
    signals,
    stored,
    suspend,
    suspended,
    waitpoint,
)

pytestmark = pytest.mark.modes


def in_order(db, connect, first, second):
    """`first` in a transaction that stays open until `second` waits for it: both answers."""
    holder, waiter = connect(autocommit=False), connect()
    answer = first(holder)
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(second, waiter)
        wait_for_lock(db, waiter)
        holder.commit()
        try:
            return answer, later.result(90)
        except psycopg.Error as error:
            return answer, error.sqlstate


CLOSED, NOT_SIGNALABLE = "WF414", "WF413"


def scene(db, clock, **args):
    clock.freeze()
    claim, point = suspended(db, timeout_ms=1000, **args)
    clock.advance(999)
    return claim, point


def cancel(claim):
    return lambda conn: one(conn, "ff_cancel_execution", execution_id=claim["execution_id"])


def resume(claim):
    return lambda conn: one(conn, "ff_resume_execution", execution_id=claim["execution_id"])


def state(db, claim):
    return execution(db, claim["execution_id"])["public_state"]


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_signal_before_the_timeout_wins(db, connect, clock):
    claim, point = scene(db, clock)

    def late(conn):
        clock.advance(1)
        return expire(conn, claim)

    signal, timeout = in_order(db, connect, lambda conn: deliver(conn, claim, point), late)
    assert signal["resumed"]
    assert timeout == {"outcome": "not_suspended", "public_state": "resumable"}
    assert violations(db) == []


@pytest.mark.parametrize(
    ("behavior", "told"),
    [
        ("fail", NOT_SIGNALABLE),
        ("cancel", NOT_SIGNALABLE),
        ("expire", NOT_SIGNALABLE),
        ("auto_resume_with_timeout_signal", CLOSED),
    ],
)
def test_a_timeout_before_the_signal_wins(db, connect, clock, behavior, told):
    claim, point = scene(db, clock, timeout_behavior=behavior)
    clock.advance(1)
    timeout, signal = in_order(
        db, connect, lambda conn: expire(conn, claim), lambda conn: deliver(conn, claim, point)
    )
    assert timeout["outcome"] in ("failed", "cancelled", "expired", "auto_resumed")
    assert signal == told
    assert violations(db) == []


@pytest.mark.read_committed("the clock of the tests is a row, which a snapshot shows as it was")
def test_a_signal_that_waited_past_the_deadline_is_checked_at_the_time_it_got_the_lock(db, connect, clock):
    claim, point = scene(db, clock)

    def hold(conn):
        conn.execute("select 1 from ff_exec_core for update")

    holder, waiter = connect(autocommit=False), connect()
    hold(holder)
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(deliver, waiter, claim, point)
        wait_for_lock(db, waiter)
        clock.advance(1)
        holder.rollback()
        with pytest.raises(psycopg.Error) as caught:
            later.result(90)
    assert caught.value.sqlstate == CLOSED
    assert expire(db, claim)["outcome"] == "failed"


def test_a_signal_and_a_cancellation_in_both_orders(db, connect, clock):
    claim, point = scene(db, clock)
    signal, cancelled = in_order(db, connect, lambda conn: deliver(conn, claim, point), cancel(claim))
    assert (signal["resumed"], cancelled["cancelled_from"]) == (True, "resumable")
    claim, point = suspended(db)
    cancelled, signal = in_order(db, connect, cancel(claim), lambda conn: deliver(conn, claim, point))
    assert (cancelled["cancelled_from"], signal) == ("suspended", NOT_SIGNALABLE)
    assert state(db, claim) == "cancelled"
    assert violations(db) == []


def test_a_signal_and_an_operators_resume_in_both_orders(db, connect):
    claim, point = suspended(db)
    signal, resumed = in_order(db, connect, lambda conn: deliver(conn, claim, point), resume(claim))
    assert (signal["resumed"], resumed) == (True, "WF407")
    claim, point = suspended(db)
    resumed, signal = in_order(db, connect, resume(claim), lambda conn: deliver(conn, claim, point))
    assert (resumed["outcome"], signal) == ("resumed", CLOSED)
    assert violations(db) == []


def test_a_cancellation_and_a_timeout_in_both_orders(db, connect, clock):
    for order in (1, -1):
        claim, _ = scene(db, clock)
        clock.advance(1)
        steps = [cancel(claim), lambda conn, claim=claim: expire(conn, claim)][::order]
        first, second = in_order(db, connect, *steps)
        if order == 1:
            assert (first["outcome"], second["outcome"]) == ("cancelled", "not_suspended")
        else:
            assert (first["outcome"], second) == ("failed", "WF405")
        completions = [e for e in events(db, claim["execution_id"]) if e.startswith("completion/")]
        assert len(completions) == 1
    assert violations(db) == []


def test_a_signal_and_the_suspension_that_binds_its_waitpoint_in_both_orders(db, connect):
    for order in (1, -1):
        claim = run(db)
        point = waitpoint(db, claim["handle"])
        bind = [{"use_pending": str(point["waitpoint_id"])}]
        steps = [
            lambda conn, claim=claim, point=point: deliver(conn, claim, point),
            lambda conn, claim=claim, bind=bind: suspend(conn, claim["handle"], waitpoints=bind),
        ][::order]
        first, second = in_order(db, connect, *steps)
        if order == 1:
            assert first["effect"] == "buffered_for_pending_waitpoint"
            assert second[0]["outcome"] == "already_satisfied"
        else:
            assert first[0]["outcome"] == "suspended"
            assert second["resumed"] is True
    assert violations(db) == []


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_suspension_with_an_old_snapshot_does_not_miss_a_signal(db, connect, level):
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    conn = connect(autocommit=False)
    conn.execute(f"set transaction isolation level {level}")
    conn.execute("select count(*) from ff_signal")
    deliver(db, claim, point)
    with pytest.raises(psycopg.errors.SerializationFailure):
        suspend(conn, claim["handle"], waitpoints=[{"use_pending": str(point["waitpoint_id"])}])
    conn.rollback()
    (row,) = suspend(conn, claim["handle"], waitpoints=[{"use_pending": str(point["waitpoint_id"])}])
    assert row["outcome"] == "already_satisfied"
    conn.commit()


def test_two_signals_of_which_either_is_enough(db, connect):
    claim, point = suspended(db)
    first, second = in_order(
        db, connect, lambda conn: deliver(conn, claim, point), lambda conn: deliver(conn, claim, point)
    )
    assert (first["resumed"], second) == (True, CLOSED)
    assert [g["seq"] for g in signals(db, claim)] == [1]


def test_many_signals_at_once_are_numbered_and_exactly_one_resumes(db, connect):
    claim, point = suspended(db, count(5, "signals", ["a"]))
    conns = [connect() for _ in range(8)]

    def work(n):
        try:
            return deliver(conns[n], claim, point, "x")["resumed"]
        except psycopg.Error as error:
            return error.sqlstate

    got = Counter(together(8, work))
    assert got == {False: 4, True: 1, CLOSED: 3}
    assert [g["seq"] for g in signals(db, claim)] == [1, 2, 3, 4, 5]
    assert violations(db) == []


def test_one_signal_from_many_senders_is_accepted_once(db, connect):
    for key in ({"idempotency_key": "k"}, {"signal_id": "018f3a2e-7b6c-7d1e-9f00-aabbccddee07"}):
        claim, point = suspended(db)
        conns = [connect() for _ in range(6)]
        got = together(6, lambda n, c=claim, p=point, k=key, s=conns: deliver(s[n], c, p, payload=b"x", **k))
        assert Counter(row["outcome"] for row in got) == {"accepted": 1, "duplicate": 5}
        assert Counter(row["resumed"] for row in got) == {True: 1, False: 5}
        assert len({row["signal_id"] for row in got}) == 1
    assert violations(db) == []


def test_one_suspension_asked_for_many_times_happens_once(db, connect):
    for key in ({}, {"idempotency_key": "k"}):
        claim = run(db)
        conns = [connect() for _ in range(6)]
        got = together(6, lambda n, c=claim, k=key, s=conns: suspend(s[n], c["handle"], **k)[0])
        assert Counter(row["replayed"] for row in got) == {False: 1, True: 5}
        assert len({row["waitpoint_token"] for row in got}) == 1
    assert len(table(db, "select 1 from ff_suspension")) == 2
    assert violations(db) == []


def test_a_suspension_and_a_reclaim_do_not_both_win(db, connect, clock):
    clock.freeze()
    claim = run(db)
    clock.advance(30_000)
    taken, suspension = in_order(db, connect, take, lambda conn: suspend(conn, claim["handle"]))
    assert (taken["handle_kind"], suspension) == ("reclaimed", "WF401")


def test_a_chosen_id_that_two_want_at_once_goes_to_one(db, connect):
    a, b = run(db), run(db)
    chosen = "018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    bind = [{"key": "approval", "waitpoint_id": chosen}]
    first, second = in_order(
        db,
        connect,
        lambda conn: suspend(conn, a["handle"], waitpoints=bind),
        lambda conn: suspend(conn, b["handle"], waitpoints=bind),
    )
    assert (first[0]["outcome"], second) == ("suspended", "WF306")
    c, d = run(db), run(db)
    first, second = in_order(
        db,
        connect,
        lambda conn: suspend(conn, c["handle"], suspension_id=chosen),
        lambda conn: suspend(conn, d["handle"], suspension_id=chosen),
    )
    assert (first[0]["outcome"], second) == ("suspended", "WF304")
    e, f = run(db), run(db)
    mine = "018f3a2e-7b6c-7d1e-9f00-aabbccddee08"
    first, second = in_order(
        db,
        connect,
        lambda conn: waitpoint(conn, e["handle"], waitpoint_id=mine),
        lambda conn: waitpoint(conn, f["handle"], waitpoint_id=mine),
    )
    assert (first["outcome"], second) == ("created", "WF306")
    assert violations(db) == []


def test_rotations_under_load_refuse_no_token_within_its_grace_and_accept_none_after_it(db, connect, clock):
    """Four rotations while clients suspend and deliver; then time passes the first grace, but not the others."""
    now = clock.freeze()
    seed(db, "r0")
    stop = threading.Event()
    minted: list[tuple[dict, dict]] = []

    def work(n):
        conn, done = connect(), 0
        lane = f"lane-{n}"
        while not stop.is_set() or done < 5:
            create(conn, lane)
            claim = take(conn, lane)
            kept = waitpoint(conn, claim["handle"], "later", expires_in_ms=10**9)
            (point,) = suspend(conn, claim["handle"], APPROVAL)
            assert deliver(conn, claim, point)["resumed"]
            assert deliver(conn, claim, kept)["outcome"] == "accepted"
            minted.append((claim, kept))
            done += 1
        return done

    with ThreadPoolExecutor(16) as pool:
        jobs = [pool.submit(work, n) for n in range(16)]

        def wait_for(kid):
            for _ in range(6000):
                if any(point["waitpoint_token"].startswith(f"{kid}:") for _, point in list(minted)):
                    return
                assert not any(job.done() for job in jobs)
                time.sleep(0.005)
            raise AssertionError(f"nothing was signed with {kid}")

        try:
            for n in range(1, 5):
                wait_for(f"r{n - 1}")
                one(db, "ff_rotate_waitpoint_hmac_secret", new_kid=f"r{n}", grace_ms=1000 * n)
            wait_for("r4")
        finally:
            stop.set()
        assert sum(job.result(90) for job in jobs) >= 80
    keys = {k["kid"]: k["expires_at_ms"] for k in rows(db, "ff_list_waitpoint_hmac_kids")}
    assert keys == {"r0": now + 1000, "r1": now + 2000, "r2": now + 3000, "r3": now + 4000, "r4": None}
    by_kid = {point["waitpoint_token"].split(":")[0]: (claim, point) for claim, point in minted}
    assert by_kid.keys() == keys.keys()
    for step in range(5):
        for kid, (claim, point) in by_kid.items():
            expired = keys[kid] is not None and keys[kid] <= now + 1000 * step
            try:
                assert deliver(db, claim, point, f"x{step}")["outcome"] == "accepted"
                assert not expired
            except psycopg.Error as error:
                assert error.sqlstate == "WF122"
                assert expired
        clock.advance(1000)
    assert violations(db) == []


def test_deliveries_to_different_executions_do_not_wait_for_each_other(db, connect):
    a, pa = suspended(db)
    b, pb = suspended(db)
    holder = connect(autocommit=False)
    assert deliver(holder, a, pa)["resumed"]
    db.execute("set lock_timeout = '5s'")
    assert deliver(db, b, pb)["resumed"]
    holder.rollback()
    assert stored(db, "ff_suspension", suspension_id=pa["suspension_id"])["closed_at_ms"] is None
