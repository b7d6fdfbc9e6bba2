"""ff_mark_lease_expired_if_due, ff_promote_delayed, ff_expire_execution: timers of one execution."""

import pytest

from tests.executions.states import (
    ACTIVE,
    ONE_RUN,
    POLICY,
    RUNNABLE,
    TERMINAL,
    UNKNOWN,
    VECTORS,
    attempts,
    everything,
    reach,
    vector,
)
from tests.sql import claim, create, events, execution, one, refused, table, take, violations

FUNCTIONS = {
    "ff_mark_lease_expired_if_due": {},
    "ff_promote_delayed": {},
    "ff_expire_execution": {"phase": "execution_deadline"},
}


def mark(db, eid):
    return one(db, "ff_mark_lease_expired_if_due", execution_id=eid)


def promote(db, eid):
    return one(db, "ff_promote_delayed", execution_id=eid)


def expire(db, eid, phase):
    return one(db, "ff_expire_execution", execution_id=eid, phase=phase)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_missing_execution_is_an_answer_and_a_malformed_id_an_error(db, name):
    eid = create(db)
    number = int(eid[4 : eid.index("}")])
    for missing in (UNKNOWN, eid.replace(f":{number}}}", f":{(number + 1) % 256}}}")):
        answer = one(db, name, execution_id=missing, **FUNCTIONS[name])
        assert "not_found" in answer.values()
        assert answer.get("public_state") is None
    with refused("invalid_execution_id"):
        one(db, name, execution_id="x", **FUNCTIONS[name])
    with refused("invalid_input") as refusal:
        one(db, name, execution_id=None, **FUNCTIONS[name])
    assert refusal.detail["arg"] == "p_execution_id"


def test_a_lease_is_marked_in_the_millisecond_of_its_end(db, clock):
    clock.freeze()
    eid = create(db, policy=POLICY)
    row = take(db, lease_ttl_ms=100)
    clock.advance(99)
    assert mark(db, eid) == {"outcome": "already_satisfied", "reason": "not_yet_expired"}
    clock.advance(1)
    before = execution(db, eid)
    assert mark(db, eid) == {"outcome": "marked_expired", "reason": None}
    assert vector(db, eid) == VECTORS["expired lease"]
    stored = execution(db, eid)
    for kept in (
        "lease_id",
        "lease_epoch",
        "lease_expires_at_ms",
        "worker_id",
        "current_attempt_id",
        "retry_count",
    ):
        assert stored[kept] == before[kept]
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["release_op"]) == ("started", None)
    assert events(db, eid) == ["lease/acquired", "lease/expired:ttl"]
    event = table(db, "select * from ff_event where event_type = 'expired'")[0]
    assert (event["lease_id"], event["lease_epoch"], event["worker_id"]) == (row["lease_id"], 1, "w")
    before = everything(db)
    assert mark(db, eid) == {"outcome": "already_satisfied", "reason": "already_expired"}
    assert everything(db) == before
    assert violations(db) == []


def test_a_renewed_lease_is_not_marked_at_its_old_end(db, clock):
    clock.freeze()
    eid = create(db)
    row = take(db, lease_ttl_ms=100)
    clock.advance(50)
    one(db, "ff_renew", handle=row["handle"])
    clock.advance(50)
    assert mark(db, eid)["reason"] == "not_yet_expired"
    clock.advance(50)
    assert mark(db, eid)["outcome"] == "marked_expired"


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        *[(state, "not_active") for state in (*RUNNABLE, *TERMINAL)],
        ("leased", "not_yet_expired"),
        ("expired lease", "already_expired"),
        ("revoked lease", "already_revoked"),
    ],
)
def test_what_holds_no_lapsed_lease_is_not_marked(db, clock, state, reason):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    if state != "leased":
        clock.advance(100_000)
    before = everything(db)
    assert mark(db, eid) == {"outcome": "already_satisfied", "reason": reason}
    assert everything(db) == before


@pytest.mark.parametrize(
    ("state", "lasts", "after"),
    [("delayed", 5000, "first"), ("backoff", 1000, "retry"), ("paused", 5000, "resumable")],
)
def test_a_delay_is_over_in_its_millisecond(db, clock, state, lasts, after):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    deadline = execution(db, eid)["deadline_at_ms"]
    clock.advance(lasts - 1)
    before = everything(db)
    assert promote(db, eid) == {"outcome": "not_due", "public_state": "delayed"}
    assert everything(db) == before
    clock.advance(1)
    assert promote(db, eid) == {"outcome": "promoted", "public_state": VECTORS[after][-1]}
    assert vector(db, eid) == VECTORS[after]
    stored = execution(db, eid)
    assert (stored["delay_until_ms"], stored["deadline_at_ms"]) == (None, deadline)
    assert stored["attempt_remaining_ms"] == (60_000 if state == "paused" else None)
    before = everything(db)
    assert promote(db, eid) == {"outcome": "not_delayed", "public_state": VECTORS[after][-1]}
    assert everything(db) == before
    assert violations(db) == []
    assert take(db)["execution_id"] == eid


@pytest.mark.parametrize("state", ["first", "retry", "replay", "resumable", *ACTIVE, *TERMINAL])
def test_what_is_not_delayed_is_not_promoted(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    assert promote(db, eid) == {"outcome": "not_delayed", "public_state": VECTORS[state][-1]}
    assert everything(db) == before


@pytest.mark.parametrize("phase", [None, "", "lease", "Attempt_Timeout", "ttl"])
def test_a_phase_must_be_one_of_the_two(db, phase):
    for eid in (create(db), UNKNOWN):
        with refused("invalid_input") as refusal:
            expire(db, eid, phase)
        assert refusal.detail["arg"] == "p_phase"


@pytest.mark.parametrize("phase", ["attempt_timeout", "execution_deadline"])
@pytest.mark.parametrize("state", TERMINAL)
def test_what_has_ended_does_not_expire(db, clock, state, phase):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    clock.advance(10_000_000)
    before = everything(db)
    assert expire(db, eid, phase) == {"outcome": "already_terminal", "public_state": VECTORS[state][-1]}
    assert everything(db) == before


def test_an_attempt_times_out_in_its_millisecond_and_is_retried(db, clock):
    now = clock.freeze()
    eid = create(db, policy=POLICY)
    row = take(db, lease_ttl_ms=100_000)
    assert row["lease_expires_at_ms"] == now + 60_000
    clock.advance(59_999)
    before = everything(db)
    assert expire(db, eid, "attempt_timeout") == {"outcome": "not_due", "public_state": "active"}
    assert everything(db) == before
    clock.advance(1)
    assert expire(db, eid, "attempt_timeout") == {"outcome": "retry_scheduled", "public_state": "delayed"}
    assert vector(db, eid) == VECTORS["backoff"]
    stored = execution(db, eid)
    assert (stored["retry_count"], stored["delay_until_ms"]) == (1, now + 61_000)
    assert (stored["failure_reason"], stored["failure_category"]) == ("attempt_timeout", "attempt_timeout")
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["outcome"], attempt["release_op"]) == (
        "ended_failure",
        "expired",
        "expire",
    )
    assert (attempt["failure_reason"], attempt["failure_category"], attempt["classification"]) == (
        "attempt_timeout",
        "attempt_timeout",
        "timeout",
    )
    assert expire(db, eid, "attempt_timeout") == {"outcome": "not_due", "public_state": "delayed"}
    assert violations(db) == []


@pytest.mark.parametrize(
    ("retry", "outcome"),
    [
        ({}, "retry_scheduled"),
        ({"max_retries": 0}, "expired"),
        ({"retryable_categories": ["attempt_timeout"]}, "retry_scheduled"),
        ({"retryable_categories": ["timeout"]}, "expired"),
        (None, "expired"),
    ],
)
def test_the_policy_decides_about_a_retry_after_a_timeout(db, clock, retry, outcome):
    clock.freeze()
    policy = {"timeout_policy": {"attempt_timeout_ms": 100}} | (
        {} if retry is None else {"retry_policy": retry}
    )
    eid = create(db, policy=policy)
    take(db)
    clock.advance(100)
    assert expire(db, eid, "attempt_timeout")["outcome"] == outcome
    assert execution(db, eid)["public_state"] == ("expired" if outcome == "expired" else "delayed")
    assert violations(db) == []


def test_a_timeout_without_delay_waits_at_once(db, clock):
    clock.freeze()
    retry = {"backoff": {"type": "fixed", "delay_ms": 0}}
    eid = create(db, policy={"timeout_policy": {"attempt_timeout_ms": 100}, "retry_policy": retry})
    take(db)
    clock.advance(100)
    assert expire(db, eid, "attempt_timeout") == {"outcome": "retry_scheduled", "public_state": "waiting"}
    assert take(db)["attempt_type"] == "retry"


def test_an_attempt_without_a_timeout_never_times_out(db, clock):
    clock.freeze()
    eid = create(db)
    take(db)
    clock.advance(10**10)
    assert expire(db, eid, "attempt_timeout")["outcome"] == "not_due"
    assert expire(db, eid, "execution_deadline")["outcome"] == "not_due"


@pytest.mark.parametrize("state", RUNNABLE)
def test_an_attempt_that_does_not_run_cannot_time_out(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    clock.advance(900_000)
    assert expire(db, eid, "attempt_timeout") == {"outcome": "not_due", "public_state": VECTORS[state][-1]}


@pytest.mark.parametrize("state", [*RUNNABLE, *ACTIVE])
def test_a_deadline_ends_what_has_not_ended_in_its_millisecond(db, clock, state):
    now = clock.freeze()
    eid, _ = reach(db, clock, state)
    deadline = execution(db, eid)["deadline_at_ms"]
    clock.set(deadline - 1)
    before = everything(db)
    assert expire(db, eid, "execution_deadline") == {"outcome": "not_due", "public_state": VECTORS[state][-1]}
    assert everything(db) == before
    clock.advance(1)
    assert expire(db, eid, "execution_deadline") == {"outcome": "expired", "public_state": "expired"}
    stored = execution(db, eid)
    assert (stored["failure_reason"], stored["terminal_at_ms"]) == ("execution_deadline", deadline)
    assert deadline >= now + 1_000_000
    assert stored["retry_count"] == (1 if state in ("backoff", "retry") else 0)
    assert [a for a in attempts(db, eid) if a["ended_at_ms"] is None] == []
    assert claim(db) is None
    assert violations(db) == []


def test_a_timeout_without_a_retry_left_says_why_it_expired(db, clock):
    clock.freeze()
    eid, _ = reach(db, clock, "leased", policy=ONE_RUN)
    clock.advance(60_000)
    assert expire(db, eid, "attempt_timeout") == {"outcome": "expired", "public_state": "expired"}
    stored = execution(db, eid)
    assert (stored["failure_reason"], stored["failure_category"]) == ("attempt_timeout", "attempt_timeout")
    assert (stored["terminal_outcome"], stored["cancelled_by"]) == ("expired", None)


@pytest.mark.parametrize("state", ["expired lease", "revoked lease"])
@pytest.mark.parametrize("phase", ["attempt_timeout", "execution_deadline"])
def test_a_grant_to_reclaim_falls_with_what_expires(db, clock, state, phase):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    one(
        db,
        "ff_issue_reclaim_grant",
        execution_id=eid,
        worker_id="w",
        worker_instance_id="w",
        grant_ttl_ms=86_400_000,
    )
    clock.advance(60_000 if phase == "attempt_timeout" else 1_000_000)
    expire(db, eid, phase)
    assert table(db, "select * from ff_claim_grant") == []
    clock.advance(1000)
    assert (claim(db) is not None) == (phase == "attempt_timeout")
    assert violations(db) == []
