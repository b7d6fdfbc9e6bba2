"""ff_cancel and ff_cancel_execution: the cancellation of work."""

import pytest

from tests.executions.states import (
    ACTIVE,
    RUNNABLE,
    UNKNOWN,
    VECTORS,
    attempts,
    details,
    everything,
    fence,
    news,
    reach,
    vector,
)
from tests.sql import claim, create, events, execution, one, refused, take, violations


def holder(row):
    return {k: v for k, v in fence(row).items() if k != "attempt_index"} | {"source": "lease_holder"}


def test_the_holder_gives_its_work_up(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db)
    clock.advance(5)
    assert one(db, "ff_cancel", handle=row["handle"], reason="no use") == {
        "outcome": "cancelled",
        "public_state": "cancelled",
        "replayed": False,
    }
    stored = execution(db, eid)
    assert (stored["cancellation_reason"], stored["cancelled_by"]) == ("no use", "lease_holder")
    assert stored["terminal_at_ms"] == now + 5
    assert (stored["lease_id"], stored["worker_id"], stored["current_attempt_id"]) == (None,) * 3
    assert (stored["failure_reason"], stored["failure_category"]) == (None, None)
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["outcome"]) == ("ended_cancelled", "cancelled")
    assert (attempt["release_op"], attempt["ended_at_ms"]) == ("cancel", now + 5)
    assert events(db, eid) == ["lease/acquired", "lease/released:cancel", "completion/cancelled:no use"]
    assert claim(db) is None
    assert violations(db) == []


@pytest.mark.parametrize("source", ["operator_override", "flow_cascade", "system_timeout"])
@pytest.mark.parametrize("state", [*RUNNABLE, *ACTIVE])
def test_others_cancel_it_in_any_state_without_a_fence(db, clock, state, source):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    earlier = events(db, eid)
    assert one(db, "ff_cancel_execution", execution_id=eid, source=source, reason="r") == {
        "outcome": "cancelled",
        "public_state": "cancelled",
        "cancelled_from": VECTORS[state][-1],
    }
    stored = execution(db, eid)
    assert (stored["cancellation_reason"], stored["cancelled_by"]) == ("r", source)
    assert (stored["delay_until_ms"], stored["attempt_remaining_ms"]) == (None, None)
    said = news(db, eid, earlier)
    assert ("operator/cancelled:r" in said) == (source == "operator_override")
    assert said.count("completion/cancelled:r") == 1
    assert claim(db) is None
    assert violations(db) == []


def test_the_operators_word_is_an_event_of_its_own(db, clock):
    eid, _ = reach(db, clock, "leased")
    earlier = events(db, eid)
    one(db, "ff_cancel_execution", execution_id=eid)
    assert news(db, eid, earlier) == ["operator/cancelled", "lease/released:cancel", "completion/cancelled"]
    assert details(db, eid, "released")[0] == "cancel"
    assert execution(db, eid)["cancelled_by"] == "operator_override"


def test_the_holder_may_cancel_by_its_fence(db, clock):
    eid, row = reach(db, clock, "leased")
    earlier = events(db, eid)
    assert one(db, "ff_cancel_execution", **holder(row), reason="r")["cancelled_from"] == "active"
    assert execution(db, eid)["cancelled_by"] == "lease_holder"
    assert news(db, eid, earlier) == ["lease/released:cancel", "completion/cancelled:r"]


def test_a_cancelled_execution_is_already_cancelled_for_every_caller(db, clock):
    clock.freeze()
    for state in ("cancelled", "cancelled unclaimed"):
        eid, _ = reach(db, clock, state)
        before = everything(db)
        for source in ("operator_override", "lease_holder", "flow_cascade", "system_timeout"):
            assert one(db, "ff_cancel_execution", execution_id=eid, source=source) == {
                "outcome": "already_cancelled",
                "public_state": "cancelled",
                "cancelled_from": "cancelled",
            }
        assert everything(db) == before


@pytest.mark.parametrize("source", ["operator_override", "lease_holder", "flow_cascade"])
@pytest.mark.parametrize("state", ["success", "failed", "expired", "expired unclaimed"])
def test_what_ended_otherwise_cannot_be_cancelled(db, clock, state, source):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    with refused("execution_already_terminal") as refusal:
        one(db, "ff_cancel_execution", execution_id=eid, source=source)
    assert refusal.detail["public_state"] == VECTORS[state][-1]
    assert refusal.detail["execution_id"] == eid
    assert everything(db) == before


@pytest.mark.parametrize("source", [None, "", "operator", "Lease_Holder", "engine", "lease_holder "])
def test_a_source_must_be_one_of_the_four(db, source):
    for eid in (create(db), UNKNOWN):
        with refused("invalid_input") as refusal:
            one(db, "ff_cancel_execution", execution_id=eid, source=source)
        assert refusal.detail["arg"] == "p_source"


@pytest.mark.parametrize("source", ["operator_override", "lease_holder", "flow_cascade", "system_timeout"])
def test_the_execution_is_looked_for_before_the_fence(db, source):
    with refused("execution_not_found") as refusal:
        one(db, "ff_cancel_execution", execution_id=UNKNOWN, source=source)
    assert refusal.detail["execution_id"] == UNKNOWN
    with refused("invalid_execution_id"):
        one(db, "ff_cancel_execution", execution_id="x", source=source)
    with refused("invalid_input"):
        one(db, "ff_cancel_execution", execution_id=None, source=source)


def test_a_fence_is_not_looked_at_unless_the_holder_asks(db, clock):
    eid, row = reach(db, clock, "leased")
    answer = one(db, "ff_cancel_execution", execution_id=eid, lease_id=row["attempt_id"])
    assert answer["outcome"] == "cancelled"


@pytest.mark.parametrize(("reason", "stored"), [(None, ""), ("a\nb", "a\nb"), ("ü" * 5000, "ü" * 4096)])
def test_a_reason_is_cut_and_never_refused(db, reason, stored):
    eid = create(db)
    one(db, "ff_cancel_execution", execution_id=eid, reason=reason)
    assert execution(db, eid)["cancellation_reason"] == stored
    eid = create(db)
    one(db, "ff_cancel", handle=take(db)["handle"], reason=reason)
    assert execution(db, eid)["cancellation_reason"] == stored


@pytest.mark.parametrize("state", ["first", "resumable", "expired lease"])
def test_a_grant_goes_with_the_execution(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    name = "ff_issue_reclaim_grant" if state == "expired lease" else "ff_issue_claim_grant"
    one(db, name, execution_id=eid, worker_id="w", worker_instance_id="w")
    assert db.execute("select count(*) from ff_claim_grant").fetchone() == (1,)
    one(db, "ff_cancel_execution", execution_id=eid)
    assert db.execute("select count(*) from ff_claim_grant").fetchone() == (0,)
    assert violations(db) == []


def test_a_cancelled_execution_does_not_come_back_to_its_holder(db, clock):
    eid, row = reach(db, clock, "leased")
    one(db, "ff_cancel_execution", execution_id=eid)
    for verb in ("ff_complete", "ff_fail", "ff_renew"):
        with refused("execution_not_active") as refusal:
            one(db, verb, handle=row["handle"])
        assert refusal.detail["terminal_outcome"] == "cancelled"
    assert vector(db, eid) == VECTORS["cancelled"]
