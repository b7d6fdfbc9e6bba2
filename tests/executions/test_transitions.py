"""Every transition between the states of an execution: its target, its effect on the attempt, its events."""

import pytest

from tests.executions.states import (
    ACTIVE,
    ONE_RUN,
    POLICY,
    RUNNABLE,
    TERMINAL,
    VECTORS,
    attempts,
    news,
    reach,
    vector,
)
from tests.sql import claim, events, one, table, take, violations

RECLAIMED = "initial interrupted_reclaimed interrupted_reclaimed"


def verb(name, **args):
    return lambda db, clock, eid, row: one(db, name, handle=row["handle"], **args)


def control(name, **args):
    return lambda db, clock, eid, row: one(db, name, execution_id=eid, **args)


def later(ms, operation):
    def run(db, clock, eid, row):
        clock.advance(ms)
        operation(db, clock, eid, row)

    return run


def take_it(db, clock, eid, row):
    assert take(db)["execution_id"] == eid


OVERRIDE = {"source": "operator_override"}
expire_attempt = later(60_000, control("ff_expire_execution", phase="attempt_timeout"))
expire_execution = later(1_000_000, control("ff_expire_execution", phase="execution_deadline"))
mark = control("ff_mark_lease_expired_if_due")
promote = control("ff_promote_delayed")

# state before, operation, state after, attempts after (type, state, outcome), events
TRANSITIONS = [
    ("first", take_it, "leased", ["initial started"], ["lease/acquired"]),
    ("retry", take_it, "leased", ["initial ended_failure failure", "retry started"], ["lease/acquired"]),
    ("replay", take_it, "leased", ["initial ended_success success", "replay started"], ["lease/acquired"]),
    ("resumable", take_it, "leased", ["initial started"], ["lease/acquired"]),
    ("delayed", later(5000, take_it), "leased", ["initial started"], ["lease/acquired"]),
    (
        "backoff",
        later(1000, take_it),
        "leased",
        ["initial ended_failure failure", "retry started"],
        ["lease/acquired"],
    ),
    ("paused", later(5000, take_it), "leased", ["initial started"], ["lease/acquired"]),
    (
        "lapsed lease",
        take_it,
        "leased",
        [RECLAIMED, "reclaim started"],
        ["lease/expired:ttl", "lease/reclaimed"],
    ),
    ("expired lease", take_it, "leased", [RECLAIMED, "reclaim started"], ["lease/reclaimed"]),
    ("revoked lease", take_it, "leased", [RECLAIMED, "reclaim started"], ["lease/reclaimed"]),
    ("leased", verb("ff_renew"), "leased", ["initial started"], ["lease/renewed"]),
    ("leased", verb("ff_progress", percent=1), "leased", ["initial started"], []),
    (
        "leased",
        verb("ff_complete"),
        "success",
        ["initial ended_success success"],
        ["lease/released:complete", "completion/success"],
    ),
    ("leased", verb("ff_fail"), "backoff", ["initial ended_failure failure"], ["lease/released:fail"]),
    (
        "leased",
        verb("ff_fail", classification="permanent", reason="r"),
        "failed",
        ["initial ended_failure failure"],
        ["lease/released:fail", "completion/failed:r"],
    ),
    ("leased", verb("ff_delay", delay_ms=1), "paused", ["initial suspended"], ["lease/released:delay"]),
    ("leased", verb("ff_delay", delay_ms=0), "resumable", ["initial suspended"], ["lease/released:delay"]),
    (
        "leased",
        verb("ff_delay", delay_until_ms=0),
        "resumable",
        ["initial suspended"],
        ["lease/released:delay"],
    ),
    (
        "leased",
        verb("ff_cancel", reason="r"),
        "cancelled",
        ["initial ended_cancelled cancelled"],
        ["lease/released:cancel", "completion/cancelled:r"],
    ),
    ("lapsed lease", mark, "expired lease", ["initial started"], ["lease/expired:ttl"]),
    (
        "leased",
        control("ff_revoke_lease", reason="r"),
        "revoked lease",
        ["initial started"],
        ["operator/lease_revoked:r", "lease/revoked:r"],
    ),
    ("delayed", later(5000, promote), "first", [], []),
    ("backoff", later(1000, promote), "retry", ["initial ended_failure failure"], []),
    ("paused", later(5000, promote), "resumable", ["initial suspended"], []),
    (
        "leased",
        expire_attempt,
        "backoff",
        ["initial ended_failure expired"],
        ["lease/expired:attempt_timeout"],
    ),
    (
        "lapsed lease",
        expire_attempt,
        "backoff",
        ["initial ended_failure expired"],
        ["lease/expired:attempt_timeout"],
    ),
    ("expired lease", expire_attempt, "backoff", ["initial ended_failure expired"], []),
    ("revoked lease", expire_attempt, "backoff", ["initial ended_failure expired"], []),
]

CLOSED = {"leased": "lease/released:cancel", "lapsed lease": "lease/expired:ttl"}
LAST_ATTEMPT = {
    "first": [],
    "delayed": [],
    "retry": ["initial ended_failure failure"],
    "backoff": ["initial ended_failure failure"],
    "replay": ["initial ended_success success"],
}

# A cancel and a deadline end whatever has not ended.
for state in (*RUNNABLE, *ACTIVE):
    unclaimed = " unclaimed" if state in ("first", "delayed") else ""
    TRANSITIONS += [
        (
            state,
            control("ff_cancel_execution", source="flow_cascade"),
            "cancelled" + unclaimed,
            LAST_ATTEMPT.get(state, ["initial ended_cancelled cancelled"]),
            [*([CLOSED[state]] if state in CLOSED else []), "completion/cancelled"],
        ),
        (
            state,
            expire_execution,
            "expired" + unclaimed,
            LAST_ATTEMPT.get(state, ["initial ended_failure expired"]),
            [
                *(["lease/expired:execution_deadline"] if state in CLOSED else []),
                "completion/expired:execution_deadline",
            ],
        ),
    ]

# An operator may act in place of the holder, whatever became of its lease.
for state in ACTIVE:
    ending = {"leased": ["lease/released:override"], "lapsed lease": ["lease/expired:ttl"]}.get(state, [])
    said = ["operator/overridden", *ending]
    TRANSITIONS += [
        (
            state,
            control("ff_complete_execution", **OVERRIDE),
            "success",
            ["initial ended_success success"],
            [*said, "completion/success"],
        ),
        (state, control("ff_fail_execution", **OVERRIDE), "backoff", ["initial ended_failure failure"], said),
        (
            state,
            control("ff_fail_execution", classification="cancelled", **OVERRIDE),
            "failed",
            ["initial ended_failure failure"],
            [*said, "completion/failed"],
        ),
        (state, control("ff_delay_execution", delay_ms=7, **OVERRIDE), "paused", ["initial suspended"], said),
        (
            state,
            control("ff_delay_execution", delay_ms=0, **OVERRIDE),
            "resumable",
            ["initial suspended"],
            said,
        ),
    ]

ENDED = {
    "success": ["initial ended_success success"],
    "failed": ["initial ended_failure failure"],
    "cancelled": ["initial ended_cancelled cancelled"],
    "expired": ["initial ended_failure expired"],
}
for state in TERMINAL:
    TRANSITIONS.append(
        (state, control("ff_replay_execution"), "replay", ENDED.get(state, []), ["operator/replayed"])
    )


@pytest.mark.parametrize(("before", "operation", "after", "left", "said"), TRANSITIONS)
def test_an_operation_leads_where_the_table_says(db, clock, before, operation, after, left, said):
    clock.freeze()
    eid, row = reach(db, clock, before)
    earlier = events(db, eid)
    operation(db, clock, eid, row)
    assert vector(db, eid) == VECTORS[after]
    found = [" ".join(filter(None, (a["attempt_type"], a["state"], a["outcome"]))) for a in attempts(db, eid)]
    assert found == left
    assert news(db, eid, earlier) == said
    assert violations(db) == []


@pytest.mark.parametrize("before", ["leased", "lapsed lease", "expired lease", "revoked lease"])
def test_an_attempt_that_runs_out_of_time_without_a_retry_expires_the_execution(db, clock, before):
    clock.freeze()
    eid, row = reach(db, clock, before, policy=ONE_RUN)
    earlier = events(db, eid)
    expire_attempt(db, clock, eid, row)
    assert vector(db, eid) == VECTORS["expired"]
    assert [(a["state"], a["outcome"]) for a in attempts(db, eid)] == [("ended_failure", "expired")]
    ending = ["lease/expired:attempt_timeout"] if before in CLOSED else []
    assert news(db, eid, earlier) == [*ending, "completion/expired:attempt_timeout"]
    assert violations(db) == []


@pytest.mark.parametrize("before", ["lapsed lease", "expired lease", "revoked lease"])
def test_a_reclaim_too_many_fails_the_execution(db, clock, before):
    clock.freeze()
    eid, _ = reach(db, clock, before, policy=ONE_RUN)
    earlier = events(db, eid)
    assert claim(db) is None
    assert vector(db, eid) == VECTORS["failed"]
    assert [(a["state"], a["outcome"]) for a in attempts(db, eid)] == [("interrupted_reclaimed",) * 2]
    ending = ["lease/expired:ttl"] if before == "lapsed lease" else []
    assert news(db, eid, earlier) == [*ending, "completion/failed:max_reclaims_exceeded"]
    assert violations(db) == []


@pytest.mark.parametrize("state", VECTORS)
def test_a_lease_event_names_lease_and_worker_and_a_completion_its_outcome(db, clock, state):
    clock.freeze()
    _, row = reach(db, clock, state)
    for event in table(db, "select * from ff_event"):
        if event["family"] == "lease":
            assert (event["lease_id"], event["lease_epoch"]) == (row["lease_id"], 1)
            assert (event["worker_id"], event["worker_instance_id"]) == ("w", "w-1")
        if event["family"] == "completion":
            assert event["outcome"] == event["event_type"]
        assert (event["attempt_index"], event["namespace"]) == (row and 0, "default")


@pytest.mark.parametrize("state", VECTORS)
def test_a_state_that_is_reached_is_sound(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state, policy=POLICY)
    assert vector(db, eid) == VECTORS[state]
    assert violations(db) == []
