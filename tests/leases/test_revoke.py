"""ff_revoke_lease: an operator ends a lease."""

import uuid

import pytest

from tests.executions.states import (
    RUNNABLE,
    TERMINAL,
    UNKNOWN,
    VECTORS,
    attempts,
    details,
    everything,
    reach,
    vector,
)
from tests.sql import create, events, execution, one, refused, take, violations


def test_a_revoked_lease_keeps_its_fence_and_its_time(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db, lease_ttl_ms=1000)
    clock.advance(5)
    assert one(db, "ff_revoke_lease", execution_id=eid, reason="maintenance") == {
        "outcome": "revoked",
        "reason": "maintenance",
        "lease_id": row["lease_id"],
        "lease_epoch": 1,
    }
    assert vector(db, eid) == VECTORS["revoked lease"]
    stored = execution(db, eid)
    assert (stored["lease_id"], stored["lease_epoch"]) == (row["lease_id"], 1)
    assert (stored["lease_expires_at_ms"], stored["lease_revoke_reason"]) == (now + 1000, "maintenance")
    assert (stored["current_attempt_id"], stored["worker_id"]) == (row["attempt_id"], "w")
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["ended_at_ms"], attempt["release_op"]) == ("started", None, None)
    assert sorted(events(db, eid)) == [
        "lease/acquired",
        "lease/revoked:maintenance",
        "operator/lease_revoked:maintenance",
    ]
    assert violations(db) == []


def test_the_reason_is_operator_unless_it_is_given(db, clock):
    eid, _ = reach(db, clock, "leased")
    assert one(db, "ff_revoke_lease", execution_id=eid)["reason"] == "operator"
    assert details(db, eid, "revoked")[0] == "operator"


def test_the_work_can_be_claimed_by_others_at_once(db, clock):
    clock.freeze()
    eid, row = reach(db, clock, "revoked lease")
    again = take(db, worker="next")
    assert (again["handle_kind"], again["attempt_type"], again["lease_epoch"]) == ("reclaimed", "reclaim", 2)
    stored = execution(db, eid)
    assert (stored["lease_reclaim_count"], stored["lease_revoke_reason"]) == (1, None)
    old, new = attempts(db, eid)
    assert (old["state"], old["failure_reason"], old["release_op"]) == (
        "interrupted_reclaimed",
        "lease_revoked",
        "reclaim",
    )
    assert (new["worker_id"], new["previous_attempt_index"]) == ("next", 0)
    with refused("stale_lease"):
        one(db, "ff_complete", handle=row["handle"])
    assert violations(db) == []


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        *[(state, "no_active_lease") for state in (*RUNNABLE, *TERMINAL)],
        ("revoked lease", "already_revoked"),
        ("expired lease", "already_expired"),
        ("lapsed lease", "already_expired"),
    ],
)
def test_what_cannot_be_revoked_is_left_alone(db, clock, state, reason):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    for args in ({}, {"expected_lease_id": uuid.uuid4()}, {"worker_instance_id": "nobody"}):
        answer = one(db, "ff_revoke_lease", execution_id=eid, **args)
        assert (answer["outcome"], answer["reason"]) == ("already_satisfied", reason)
    assert everything(db) == before


def test_a_lease_can_be_revoked_in_the_millisecond_before_its_end_and_not_in_the_next(db, clock):
    clock.freeze()
    for advance, outcome in ((99, "revoked"), (100, "already_satisfied")):
        eid = create(db, f"lane{advance}")
        take(db, f"lane{advance}", lease_ttl_ms=100)
        clock.advance(advance)
        assert one(db, "ff_revoke_lease", execution_id=eid)["outcome"] == outcome


def test_only_the_lease_or_the_worker_that_is_meant_loses_it(db, clock):
    clock.freeze()
    eid, row = reach(db, clock, "leased")
    before = everything(db)
    for args, reason in (
        ({"expected_lease_id": uuid.uuid4()}, "lease_id_mismatch"),
        ({"worker_instance_id": "w"}, "different_worker_instance"),
        ({"expected_lease_id": uuid.uuid4(), "worker_instance_id": "w"}, "lease_id_mismatch"),
        ({"expected_lease_id": row["lease_id"], "worker_instance_id": "w"}, "different_worker_instance"),
    ):
        assert one(db, "ff_revoke_lease", execution_id=eid, **args) == {
            "outcome": "already_satisfied",
            "reason": reason,
            "lease_id": None,
            "lease_epoch": None,
        }
    assert everything(db) == before
    answer = one(
        db,
        "ff_revoke_lease",
        execution_id=eid,
        expected_lease_id=row["lease_id"],
        worker_instance_id="w-1",
    )
    assert answer["outcome"] == "revoked"


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"execution_id": None}, "invalid_input"),
        ({"execution_id": "x"}, "invalid_execution_id"),
        ({"execution_id": UNKNOWN}, "execution_not_found"),
        ({"reason": None}, "invalid_input"),
        ({"reason": "a\nb"}, "invalid_input"),
        ({"reason": "x" * 4097}, "invalid_input"),
    ],
)
def test_bad_input_is_refused(db, clock, args, kind):
    eid, _ = reach(db, clock, "leased")
    with refused(kind):
        one(db, "ff_revoke_lease", **{"execution_id": eid, **args})
    assert vector(db, eid) == VECTORS["leased"]
