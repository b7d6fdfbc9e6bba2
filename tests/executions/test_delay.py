"""ff_delay and ff_delay_execution: an attempt that pauses until a time."""

import pytest

from tests.executions.states import attempts, everything, fence
from tests.sql import claim, create, events, execution, one, refused, take, violations


def test_a_delay_pauses_the_attempt_until_its_time_to_the_millisecond(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db)
    clock.advance(5)
    assert one(db, "ff_delay", handle=row["handle"], delay_ms=700) == {
        "outcome": "delayed",
        "public_state": "delayed",
        "delay_until_ms": now + 705,
        "replayed": False,
    }
    stored = execution(db, eid)
    assert stored["delay_until_ms"] == now + 705
    assert stored["current_attempt_id"] == row["attempt_id"]
    assert (stored["current_attempt_index"], stored["lease_epoch"]) == (0, 1)
    for gone in ("lease_id", "lease_expires_at_ms", "lease_check_at_ms", "lease_ttl_ms", "worker_id"):
        assert stored[gone] is None
    assert stored["worker_instance_id"] is None
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["suspended_at_ms"], attempt["ended_at_ms"]) == (
        "suspended",
        now + 5,
        None,
    )
    assert (attempt["release_op"], attempt["release_lease_id"], attempt["release_lease_epoch"]) == (
        "delay",
        row["lease_id"],
        1,
    )
    assert events(db, eid) == ["lease/acquired", "lease/released:delay"]
    assert violations(db) == []
    clock.advance(699)
    assert claim(db) is None
    clock.advance(1)
    again = take(db, worker="other")
    assert (again["handle_kind"], again["attempt_type"]) == ("resumed", "initial")
    assert (again["attempt_index"], again["attempt_id"], again["lease_epoch"]) == (0, row["attempt_id"], 2)
    assert again["lease_id"] != row["lease_id"]
    stored = execution(db, eid)
    assert (stored["retry_count"], stored["total_attempt_count"], stored["delay_until_ms"]) == (0, 1, None)
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["resumed_at_ms"], attempt["worker_id"]) == (
        "started",
        now + 705,
        "other",
    )
    assert attempt["started_at_ms"] == now
    assert violations(db) == []


@pytest.mark.parametrize(
    ("args", "outcome"),
    [
        ({"delay_ms": 0}, "eligible"),
        ({"delay_ms": 1}, "delayed"),
        ({"delay_ms": 10**14}, "delayed"),
        ({"delay_until_ms": -1}, "eligible"),
        ({"delay_until_ms": 999_999}, "eligible"),
        ({"delay_until_ms": 1_000_000}, "eligible"),
        ({"delay_until_ms": 1_000_001}, "delayed"),
        ({"delay_until_ms": 253_402_300_799_999}, "delayed"),
    ],
)
def test_a_time_that_is_not_in_the_future_makes_it_claimable_at_once(db, clock, args, outcome):
    clock.set(1_000_000)
    create(db)
    answer = one(db, "ff_delay", handle=take(db)["handle"], **args)
    until = args.get("delay_until_ms", 1_000_000 + args.get("delay_ms", 0))
    assert answer == {
        "outcome": outcome,
        "public_state": "delayed" if outcome == "delayed" else "resumable",
        "delay_until_ms": until if outcome == "delayed" else None,
        "replayed": False,
    }
    assert violations(db) == []
    found = claim(db)
    assert (found is not None) == (outcome == "eligible")
    assert found is None or found["handle_kind"] == "resumed"


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"delay_ms": 1, "delay_until_ms": 1},
        {"delay_ms": None, "delay_until_ms": None},
        {"delay_ms": -1},
        {"delay_ms": -(2**63)},
        {"delay_ms": 2**53},
        {"delay_ms": 2**63 - 1},
        {"delay_until_ms": 253_402_300_800_000},
        {"delay_until_ms": 2**63 - 1},
    ],
)
def test_exactly_one_time_must_be_given_and_be_possible(db, args):
    create(db)
    row = take(db)
    before = everything(db)
    with refused("invalid_input") as refusal:
        one(db, "ff_delay", handle=row["handle"], **args)
    assert refusal.detail["arg"].startswith("p_delay")
    with refused("invalid_input"):
        one(db, "ff_delay_execution", **fence(row), **args)
    assert everything(db) == before


def test_the_clock_of_the_attempt_stops_while_it_pauses(db, clock):
    now = clock.freeze()
    eid = create(db, policy={"timeout_policy": {"attempt_timeout_ms": 1000}})
    row = take(db)
    assert row["attempt_timeout_at_ms"] == now + 1000
    clock.advance(300)
    one(db, "ff_delay", handle=row["handle"], delay_ms=100_000)
    stored = execution(db, eid)
    assert (stored["attempt_remaining_ms"], stored["attempt_timeout_at_ms"]) == (700, None)
    clock.advance(100_000)
    assert one(db, "ff_expire_execution", execution_id=eid, phase="attempt_timeout")["outcome"] == "not_due"
    again = take(db)
    assert again["attempt_timeout_at_ms"] == again["lease_expires_at_ms"] == now + 100_300 + 700
    assert execution(db, eid)["attempt_remaining_ms"] is None
    clock.advance(200)
    one(db, "ff_delay", handle=again["handle"], delay_ms=0)
    assert execution(db, eid)["attempt_remaining_ms"] == 500
    last = take(db)
    clock.advance(499)
    one(db, "ff_renew", handle=last["handle"])
    clock.advance(1)
    with refused("lease_expired") as refusal:
        one(db, "ff_delay", handle=last["handle"], delay_ms=1)
    assert refusal.detail["reason"] == "attempt_timeout"
    assert violations(db) == []


def test_without_a_timeout_there_is_no_clock_to_stop(db, clock):
    clock.freeze()
    eid = create(db)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    assert execution(db, eid)["attempt_remaining_ms"] is None
    assert take(db)["attempt_timeout_at_ms"] is None


def test_the_deadline_goes_on_while_an_attempt_pauses(db, clock):
    now = clock.freeze()
    eid = create(db, deadline_at_ms=now + 1000)
    row = take(db)
    one(db, "ff_delay", handle=row["handle"], delay_ms=5000)
    assert execution(db, eid)["deadline_at_ms"] == now + 1000
    clock.advance(999)
    assert (
        one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")["outcome"] == "not_due"
    )
    clock.advance(1)
    assert (
        one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")["outcome"] == "expired"
    )
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["outcome"]) == ("ended_failure", "expired")
    assert events(db, eid) == [
        "lease/acquired",
        "lease/released:delay",
        "completion/expired:execution_deadline",
    ]
    assert violations(db) == []


def test_a_failure_after_a_pause_ends_the_attempt_that_paused(db, clock):
    clock.freeze()
    eid = create(db, policy={"retry_policy": {"backoff": {"type": "fixed", "delay_ms": 0}}})
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    assert one(db, "ff_fail", handle=take(db)["handle"])["next_attempt_index"] == 1
    assert take(db)["attempt_type"] == "retry"
    assert [a["state"] for a in attempts(db, eid)] == ["ended_failure", "started"]
    assert violations(db) == []


def test_a_reclaimed_attempt_that_had_paused_is_over(db, clock):
    clock.freeze()
    eid = create(db)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    assert take(db)["attempt_type"] == "reclaim"
    assert [a["state"] for a in attempts(db, eid)] == ["interrupted_reclaimed", "started"]
    assert violations(db) == []


def test_the_typed_form_does_the_same(db, clock):
    now = clock.freeze()
    create(db)
    assert one(db, "ff_delay_execution", **fence(take(db)), delay_until_ms=now + 3) == {
        "outcome": "delayed",
        "public_state": "delayed",
        "delay_until_ms": now + 3,
        "replayed": False,
    }
