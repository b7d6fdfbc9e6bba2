"""ff_complete: the successful end of an execution."""

import threading

import psycopg
import pytest

from tests.sql import claim, create, events, execution, one, refused, table, take, violations, wait_for_lock


def test_completion_ends_the_execution_and_keeps_the_result_on_the_attempt(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db)
    clock.advance(5)
    answer = one(db, "ff_complete", handle=row["handle"], result=b"\xff\x00", result_encoding="bin")
    assert answer == {
        "outcome": "completed",
        "public_state": "completed",
        "terminal_at_ms": now + 5,
        "replayed": False,
    }
    stored = execution(db, eid)
    assert (stored["lifecycle_phase"], stored["terminal_outcome"], stored["public_state"]) == (
        "terminal",
        "success",
        "completed",
    )
    assert stored["terminal_at_ms"] == now + 5
    for gone in ("lease_id", "lease_expires_at_ms", "lease_check_at_ms", "worker_id", "current_attempt_id"):
        assert stored[gone] is None
    assert stored["lease_epoch"] == 1
    (attempt,) = table(db, "select * from ff_attempt")
    assert (attempt["state"], attempt["outcome"], attempt["ended_at_ms"]) == (
        "ended_success",
        "success",
        now + 5,
    )
    assert (attempt["result"], attempt["result_encoding"]) == (b"\xff\x00", "bin")
    assert events(db, eid) == ["lease/acquired", "lease/released:complete", "completion/success"]
    assert claim(db) is None
    assert violations(db) == []


def test_the_same_call_again_answers_as_the_first_and_writes_nothing(db, clock):
    clock.freeze()
    eid = create(db)
    row = take(db)
    first = one(db, "ff_complete", handle=row["handle"], result=b"1")
    before = (execution(db, eid), events(db, eid))
    clock.advance(1_000_000)
    assert one(db, "ff_complete", handle=row["handle"], result=b"2") == {**first, "replayed": True}
    assert (execution(db, eid), events(db, eid)) == before
    assert table(db, "select result from ff_attempt") == [{"result": b"1"}]


def test_a_late_writer_is_refused(db, clock):
    clock.freeze()
    create(db)
    late = take(db, worker="late", lease_ttl_ms=100)
    clock.advance(100)
    with refused("lease_expired"):
        one(db, "ff_complete", handle=late["handle"])
    row = take(db, worker="next")
    with refused("stale_lease"):
        one(db, "ff_complete", handle=late["handle"])
    one(db, "ff_complete", handle=row["handle"], result=b"next")
    with refused("execution_not_active") as refusal:
        one(db, "ff_complete", handle=late["handle"], result=b"late")
    assert refusal.detail["public_state"] == "completed"
    assert refusal.detail["terminal_outcome"] == "success"
    assert refusal.detail["lifecycle_phase"] == "terminal"
    assert (refusal.detail["lease_epoch"], refusal.detail["attempt_index"]) == (2, 1)
    assert [a["result"] for a in table(db, "select result from ff_attempt order by attempt_index")] == [
        None,
        b"next",
    ]


def test_a_renewal_after_the_end_is_refused(db):
    create(db)
    row = take(db)
    one(db, "ff_complete", handle=row["handle"])
    with refused("execution_not_active"):
        one(db, "ff_renew", handle=row["handle"])


@pytest.mark.parametrize("encoding", ["x" * 65, "a\nb"])
def test_a_bad_encoding_is_refused_and_the_lease_stays(db, encoding):
    eid = create(db)
    row = take(db)
    with refused("invalid_input"):
        one(db, "ff_complete", handle=row["handle"], result_encoding=encoding)
    assert execution(db, eid)["public_state"] == "active"


def test_a_completion_in_a_transaction_that_rolls_back_never_happened(db, connect):
    eid = create(db)
    row = take(db)
    conn = connect(autocommit=False)
    one(conn, "ff_complete", handle=row["handle"])
    conn.rollback()
    assert execution(db, eid)["public_state"] == "active"
    assert one(db, "ff_complete", handle=row["handle"])["replayed"] is False


def test_a_large_result_is_stored_whole(db):
    create(db)
    result = bytes(range(256)) * 4096
    one(db, "ff_complete", handle=take(db)["handle"], result=result)
    assert table(db, "select result from ff_attempt")[0]["result"] == result


@pytest.mark.parametrize("bound", ["ttl", "attempt_timeout", "execution_deadline"])
def test_a_lease_that_ends_while_its_completion_waits_says_why(db, connect, clock, bound):
    now = clock.freeze()
    limits = {"attempt_timeout": {"policy": {"timeout_policy": {"attempt_timeout_ms": 50}}}}
    limits["execution_deadline"] = {"deadline_at_ms": now + 50}
    create(db, **limits.get(bound, {}))
    row = take(db, lease_ttl_ms=50 if bound == "ttl" else 60)
    holder, worker = connect(autocommit=False), connect()
    holder.execute("select from ff_execution for no key update")
    caught = []

    def complete():
        try:
            one(worker, "ff_complete", handle=row["handle"])
        except psycopg.Error as error:
            caught.append(error)

    thread = threading.Thread(target=complete)
    thread.start()
    wait_for_lock(db, worker)
    clock.advance(50)
    holder.rollback()
    thread.join()
    with refused("lease_expired") as refusal:
        raise caught[0]
    assert refusal.detail["reason"] == bound
    assert refusal.detail["lease_expires_at_ms"] == now + 50
    assert violations(db) == []
