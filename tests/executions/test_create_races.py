"""Submissions that wait for another transaction, or that conflict with an existing id or key."""

import threading

import pytest

from tests.sql import create, execution, one, refused, rows, table, violations, wait_for_lock


def test_a_key_does_not_bind_an_execution_of_another_namespace(db):
    eid = create(db, namespace="a")
    with refused("execution_id_conflict"):
        create(db, namespace="b", execution_id=eid, idempotency_key="k")
    assert table(db, "select * from ff_idempotency") == []
    assert violations(db) == []


@pytest.mark.read_committed("the clock of the tests is a row, which a snapshot shows as it was")
@pytest.mark.parametrize("batch", [False, True])
def test_times_count_from_when_the_wait_for_a_key_was_over(db, connect, clock, batch):
    now = clock.freeze()
    first, second = connect(autocommit=False), connect()
    create(first, idempotency_key="k")
    policy = {"timeout_policy": {"execution_deadline_ms": 1000}}
    args = {"policy": policy, "delay_ms": 100}
    got = []

    def submit():
        if batch:
            found = rows(
                second,
                "ff_create_executions",
                lane_id="default",
                payloads=[b""],
                idempotency_keys=["k"],
                **args,
            )
            got.append(found[0]["execution_id"])
        else:
            got.append(create(second, idempotency_key="k", **args))

    thread = threading.Thread(target=submit)
    thread.start()
    wait_for_lock(db, second)
    clock.advance(5000)
    first.rollback()
    thread.join()
    row = execution(db, got[0])
    assert (row["created_at_ms"], row["delay_until_ms"], row["deadline_at_ms"]) == (
        now + 5000,
        now + 5100,
        now + 6000,
    )


def test_the_keys_of_a_batch_are_checked_even_if_they_are_not_used(db):
    with refused("invalid_input") as refusal:
        rows(
            db,
            "ff_create_executions",
            lane_id="default",
            payloads=[b"", b""],
            idempotency_keys=["a", "k" * 513],
            policy={"dedup_window_ms": 0},
        )
    assert refusal.detail["index"] == 2


def test_capabilities_in_two_dimensions_are_capabilities(db):
    policy = {"routing_requirements": {"required_capabilities": ["x"]}}
    eid = create(db, required_capabilities=[["b", "a"]], policy=policy)
    assert execution(db, eid)["caps_key"] == "a,b,x"


@pytest.mark.parametrize("tail", ["garbage", "", "00000000-0000-0000-0000-000000000000"])
def test_an_invalid_handle_waits_for_no_lock(db, connect, tail):
    eid = create(db)
    holder, other = connect(autocommit=False), connect()
    one(holder, "ff_change_priority", execution_id=eid, priority=5)
    other.execute("set lock_timeout = '5s'")
    handle = f"ff1.{eid.split(':')[-1]}.{tail}"
    with refused("invalid_handle"):
        one(other, "ff_renew", handle=handle)
    assert one(other, "ff_renew_many", handles=[handle])["error_kind"] == "invalid_handle"
    assert one(other, "ff_complete_many", handles=[handle])["error_kind"] == "invalid_handle"
    holder.rollback()


def test_the_forms_of_a_handle_are_immutable(db):
    query = (
        "select provolatile::text as v from pg_proc where proname in ('ff_handle_encode', 'ff_handle_decode')"
    )
    assert [r["v"] for r in table(db, query)] == ["i", "i"]
