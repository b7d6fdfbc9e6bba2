"""ff_replay_execution: running an ended execution again."""

import pytest

from tests.executions.states import (
    ACTIVE,
    POLICY,
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
from tests.sql import claim, create, events, execution, one, refused, take, violations


def replay(db, eid, **args):
    return one(db, "ff_replay_execution", execution_id=eid, **args)


@pytest.mark.parametrize("state", TERMINAL)
def test_what_has_ended_runs_again_with_its_history(db, clock, state):
    clock.freeze()
    eid, row = reach(db, clock, state)
    history, before = attempts(db, eid), execution(db, eid)
    clock.advance(7)
    assert replay(db, eid) == {"outcome": "replayed", "public_state": "waiting", "replay_count": 1}
    assert vector(db, eid) == VECTORS["replay"]
    stored = execution(db, eid)
    for cleared in (
        "terminal_at_ms",
        "failure_reason",
        "failure_category",
        "cancellation_reason",
        "cancelled_by",
    ):
        assert stored[cleared] is None
    assert (stored["delay_until_ms"], stored["current_attempt_id"]) == (None, None)
    for kept in (
        "lease_epoch",
        "started_at_ms",
        "total_attempt_count",
        "current_attempt_index",
        "created_at_ms",
    ):
        assert stored[kept] == before[kept]
    assert attempts(db, eid) == history
    assert violations(db) == []
    again = take(db)
    assert (again["attempt_type"], again["handle_kind"]) == ("replay", "fresh")
    assert (again["attempt_index"], again["lease_epoch"]) == ((1, 2) if row else (0, 1))
    assert attempts(db, eid)[: len(history)] == history
    assert violations(db) == []
    one(db, "ff_complete", handle=again["handle"], result=b"again")
    assert sum(e.startswith("completion/") for e in events(db, eid)) == 2
    assert violations(db) == []


def test_the_results_of_earlier_runs_are_kept(db, clock):
    clock.freeze()
    eid = create(db)
    one(db, "ff_complete", handle=take(db)["handle"], result=b"1")
    replay(db, eid)
    assert one(db, "ff_get_execution_result", execution_id=eid)["result"] is None
    assert one(db, "ff_get_execution_result", execution_id=eid, attempt_index=0)["result"] == b"1"
    one(db, "ff_complete", handle=take(db)["handle"], result=b"2")
    assert one(db, "ff_get_execution_result", execution_id=eid)["result"] == b"2"
    assert one(db, "ff_get_execution_result", execution_id=eid, attempt_index=0)["result"] == b"1"


def test_the_event_says_who_and_why(db, clock):
    eid, _ = reach(db, clock, "failed")
    replay(db, eid, reason="fixed", requested_by="ann")
    assert details(db, eid, "replayed") == (
        "fixed",
        {"branch": "solo", "replay_count": 1, "reason": "fixed", "requested_by": "ann"},
    )


def test_retries_and_reclaims_count_from_zero(db, clock):
    clock.freeze()
    policy = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}
    eid = create(db, policy=policy | {"max_reclaim_count": 1})
    for run in range(3):
        take(db, lease_ttl_ms=10)
        clock.advance(10)
        one(db, "ff_fail", handle=take(db)["handle"])
        stored = execution(db, eid)
        assert (stored["retry_count"], stored["lease_reclaim_count"]) == (1, 1)
        one(db, "ff_fail", handle=take(db)["handle"])
        assert replay(db, eid)["replay_count"] == run + 1
        stored = execution(db, eid)
        assert (stored["retry_count"], stored["lease_reclaim_count"]) == (0, 0)
        assert violations(db) == []
    kinds = [a["attempt_type"] for a in attempts(db, eid)]
    assert kinds == ["initial", "reclaim", "retry", *["replay", "reclaim", "retry"] * 2]


@pytest.mark.parametrize("state", [*RUNNABLE, *ACTIVE])
def test_what_has_not_ended_cannot_be_replayed(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    with refused("execution_not_terminal") as refusal:
        replay(db, eid)
    assert refusal.detail["execution_id"] == eid
    assert everything(db) == before


@pytest.mark.parametrize(
    ("policy", "allowed"), [({}, 10), ({"max_replay_count": 2}, 2), ({"max_replay_count": 0}, 0)]
)
def test_replays_are_limited(db, policy, allowed):
    eid = create(db, policy=policy)
    for n in range(allowed):
        one(db, "ff_cancel_execution", execution_id=eid)
        assert replay(db, eid)["replay_count"] == n + 1
    with refused("execution_not_terminal"):
        replay(db, eid)
    one(db, "ff_cancel_execution", execution_id=eid)
    before = everything(db)
    with refused("max_replays_exhausted") as refusal:
        replay(db, eid)
    assert refusal.detail["execution_id"] == eid
    assert everything(db) == before
    assert violations(db) == []


@pytest.mark.parametrize(
    ("policy_ms", "absolute_ms", "at", "rearmed_ms"),
    [
        (None, None, 500, None),
        (1000, None, 500, 1500),
        (1000, None, 1000, 2000),
        (1000, 300, 200, 1200),
        (None, 1000, 999, 1000),
        (None, 1000, 1000, None),
        (None, 1000, 5000, None),
    ],
)
def test_the_deadline_is_armed_anew(db, clock, policy_ms, absolute_ms, at, rearmed_ms):
    now = clock.freeze()
    policy = {"timeout_policy": {"execution_deadline_ms": policy_ms}} if policy_ms else {}
    eid = create(db, policy=policy, deadline_at_ms=absolute_ms and now + absolute_ms)
    one(db, "ff_complete", handle=take(db)["handle"])
    clock.advance(at)
    replay(db, eid)
    assert execution(db, eid)["deadline_at_ms"] == (rearmed_ms and now + rearmed_ms)
    assert take(db)["deadline_at_ms"] == (rearmed_ms and now + rearmed_ms)
    assert violations(db) == []


def test_a_delay_of_the_first_run_is_not_repeated(db, clock):
    now = clock.freeze()
    for args in ({"delay_ms": 5000}, {"policy": {"delay_until_ms": now + 5000}}):
        eid = create(db, **args)
        one(db, "ff_cancel_execution", execution_id=eid)
        assert replay(db, eid)["public_state"] == "waiting"
        assert take(db)["execution_id"] == eid


def test_the_clock_of_the_attempt_starts_anew(db, clock):
    now = clock.freeze()
    eid = create(db, policy=POLICY)
    row = take(db)
    clock.advance(100)
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    one(db, "ff_cancel_execution", execution_id=eid)
    replay(db, eid)
    assert execution(db, eid)["attempt_remaining_ms"] is None
    assert take(db)["attempt_timeout_at_ms"] == now + 100 + 60_000
    assert violations(db) == []


def test_a_stopped_lane_keeps_what_is_replayed_waiting(db, clock):
    eid, _ = reach(db, clock, "success")
    db.execute("update ff_lane_registry set state = 'disabled'")
    assert replay(db, eid)["public_state"] == "waiting"
    assert claim(db) is None


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"execution_id": None}, "invalid_input"),
        ({"execution_id": "x"}, "invalid_execution_id"),
        ({"execution_id": UNKNOWN}, "execution_not_found"),
        ({"reason": "x" * 4097}, "invalid_input"),
        ({"reason": "a\nb"}, "invalid_input"),
        ({"requested_by": "x" * 257}, "invalid_input"),
        ({"requested_by": "a\nb"}, "invalid_input"),
    ],
)
def test_bad_input_is_refused(db, clock, args, kind):
    eid, _ = reach(db, clock, "success")
    with refused(kind):
        one(db, "ff_replay_execution", **{"execution_id": eid, **args})
    assert vector(db, eid) == VECTORS["success"]
