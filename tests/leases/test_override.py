"""p_source operator_override: an operator acts in place of the lease holder."""

import pytest

from tests.executions.states import (
    ACTIVE,
    POLICY,
    RUNNABLE,
    TERMINAL,
    UNKNOWN,
    attempts,
    details,
    everything,
    fence,
    reach,
)
from tests.sql import create, execution, one, refused, table, take, violations

OVERRIDE = {"source": "operator_override"}
VERBS = {
    "ff_complete_execution": ("complete", {"result": b"1"}),
    "ff_fail_execution": ("fail", {}),
    "ff_delay_execution": ("delay", {"delay_ms": 5}),
}
every_verb = pytest.mark.parametrize("name", VERBS)


@every_verb
@pytest.mark.parametrize("state", ACTIVE)
def test_an_override_needs_no_fence_and_says_what_it_did(db, clock, name, state):
    now = clock.freeze()
    eid, row = reach(db, clock, state)
    now += 10 if state in ("lapsed lease", "expired lease") else 0
    op, args = VERBS[name]
    answer = one(db, name, execution_id=eid, **OVERRIDE, **args)
    assert answer["replayed"] is False
    assert details(db, eid, "overridden") == (None, {"op": op})
    (attempt,) = attempts(db, eid)
    assert (attempt["release_op"], attempt["release_lease_id"]) == ("override", row["lease_id"])
    assert (attempt["release_lease_epoch"], attempt["release_at_ms"]) == (1, now)
    assert execution(db, eid)["lease_id"] is None
    assert violations(db) == []


def test_the_answers_are_those_of_the_holder(db, clock):
    now = clock.freeze()
    eid, _ = reach(db, clock, "revoked lease")
    assert one(db, "ff_delay_execution", execution_id=eid, **OVERRIDE, delay_ms=5) == {
        "outcome": "delayed",
        "public_state": "delayed",
        "delay_until_ms": now + 5,
        "replayed": False,
    }
    clock.advance(5)
    take(db)
    assert one(db, "ff_fail_execution", execution_id=eid, **OVERRIDE, reason="r") == {
        "outcome": "retry_scheduled",
        "public_state": "delayed",
        "delay_until_ms": now + 1005,
        "next_attempt_index": 1,
        "retry_count": 1,
        "replayed": False,
    }
    clock.advance(1000)
    take(db)
    answer = one(db, "ff_complete_execution", execution_id=eid, **OVERRIDE, result=b"1", result_encoding="e")
    assert answer == {
        "outcome": "completed",
        "public_state": "completed",
        "terminal_at_ms": now + 1005,
        "replayed": False,
    }
    assert [a["result"] for a in attempts(db, eid)] == [None, b"1"]
    assert violations(db) == []


@every_verb
@pytest.mark.parametrize("state", [*RUNNABLE, *TERMINAL])
def test_only_what_is_active_can_be_overridden(db, clock, name, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    stored = execution(db, eid)
    with refused("execution_not_active") as refusal:
        one(db, name, execution_id=eid, **OVERRIDE, **VERBS[name][1])
    assert refusal.detail == {
        "kind": "execution_not_active",
        "execution_id": eid,
        "lifecycle_phase": stored["lifecycle_phase"],
        "terminal_outcome": stored["terminal_outcome"],
        "public_state": stored["public_state"],
        "lease_epoch": stored["lease_epoch"],
        "attempt_index": stored["current_attempt_index"],
    }
    assert everything(db) == before


@every_verb
def test_a_second_override_is_no_repetition(db, clock, name):
    clock.freeze()
    eid, _ = reach(db, clock, "leased")
    one(db, name, execution_id=eid, **OVERRIDE, **VERBS[name][1])
    with refused("execution_not_active"):
        one(db, name, execution_id=eid, **OVERRIDE, **VERBS[name][1])


@every_verb
@pytest.mark.parametrize("source", [None, "", "operator", "flow_cascade", "OPERATOR_OVERRIDE"])
def test_a_source_must_be_holder_or_override(db, clock, name, source):
    _, row = reach(db, clock, "leased")
    before = everything(db)
    with refused("invalid_input") as refusal:
        one(db, name, **fence(row), source=source, **VERBS[name][1])
    assert refusal.detail["arg"] == "p_source"
    assert everything(db) == before


@every_verb
def test_a_fence_that_is_given_is_checked_all_the_same(db, clock, name):
    eid, row = reach(db, clock, "leased")
    args = VERBS[name][1]
    before = everything(db)
    with refused("partial_fence"):
        one(db, name, execution_id=eid, lease_id=row["lease_id"], **OVERRIDE, **args)
    with refused("stale_lease"):
        one(db, name, **{**fence(row), "lease_epoch": 7}, **OVERRIDE, **args)
    with refused("stale_lease") as refusal:
        one(db, name, execution_id=eid, attempt_index=1, **OVERRIDE, **args)
    assert (refusal.detail["lease_epoch"], refusal.detail["attempt_index"]) == (1, 0)
    assert everything(db) == before
    one(db, name, execution_id=eid, attempt_index=0, **OVERRIDE, **args)


@every_verb
def test_an_override_needs_an_execution_and_good_arguments(db, clock, name):
    args = VERBS[name][1]
    with refused("execution_not_found") as refusal:
        one(db, name, execution_id=UNKNOWN, **OVERRIDE, **args)
    assert refusal.detail["execution_id"] == UNKNOWN
    with refused("invalid_execution_id"):
        one(db, name, execution_id="x", **OVERRIDE, **args)
    with refused("invalid_input"):
        one(db, name, execution_id=None, **OVERRIDE, **args)
    eid, _ = reach(db, clock, "leased")
    bad = {
        "complete": {"result_encoding": "a\nb"},
        "fail": {"classification": "x"},
        "delay": {"delay_ms": -1},
    }
    before = everything(db)
    with refused("invalid_input"):
        one(db, name, execution_id=eid, **OVERRIDE, **bad[VERBS[name][0]])
    assert everything(db) == before


@every_verb
@pytest.mark.parametrize("state", ["expired lease", "revoked lease"])
def test_a_grant_to_reclaim_the_work_falls_with_it(db, clock, name, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    worker = {"worker_id": "w", "worker_instance_id": "w"}
    grant = one(db, "ff_issue_reclaim_grant", execution_id=eid, **worker)
    assert grant["outcome"] == "granted"
    one(db, name, execution_id=eid, **OVERRIDE, **VERBS[name][1])
    assert table(db, "select * from ff_claim_grant") == []
    found = one(db, "ff_reclaim_execution", execution_id=eid, grant_id=grant["grant_id"], **worker)
    assert found["outcome"] == "grant_not_found"
    assert violations(db) == []


def test_a_delay_in_the_holders_place_stops_the_clock_of_the_attempt(db, clock):
    clock.freeze()
    eid = create(db, policy=POLICY)
    row = take(db, lease_ttl_ms=10)
    clock.advance(100)
    one(db, "ff_delay_execution", execution_id=eid, **OVERRIDE, delay_ms=0)
    assert execution(db, eid)["attempt_remaining_ms"] == 59_900
    again = take(db)
    assert again["handle_kind"] == "resumed"
    assert (again["attempt_id"], again["lease_epoch"]) == (row["attempt_id"], 2)
    assert violations(db) == []
