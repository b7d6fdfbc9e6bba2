"""Executions in every state that they can be brought into, and what is stored of them."""

from collections.abc import Callable

from tests.sql import create, events, execution, one, table, take

UNKNOWN = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"

POLICY = {
    "retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 1000}},
    "timeout_policy": {"attempt_timeout_ms": 60_000, "execution_deadline_ms": 1_000_000},
}
ONE_RUN = {"timeout_policy": POLICY["timeout_policy"], "max_reclaim_count": 0, "max_replay_count": 0}

_RUNNABLE = ("runnable", "unowned", "eligible_now", "waiting_for_worker", "none")
_DELAYED = ("runnable", "unowned", "not_eligible_until_time")
_TERMINAL = ("terminal", "unowned", "not_applicable", "none")

VECTORS = {
    "first": (*_RUNNABLE, "pending_first_attempt", "waiting"),
    "retry": (*_RUNNABLE, "pending_retry_attempt", "waiting"),
    "replay": (*_RUNNABLE, "pending_replay_attempt", "waiting"),
    "resumable": (*_RUNNABLE, "attempt_interrupted", "resumable"),
    "delayed": (*_DELAYED, "waiting_for_delay", "none", "pending_first_attempt", "delayed"),
    "backoff": (*_DELAYED, "waiting_for_retry_backoff", "none", "pending_retry_attempt", "delayed"),
    "paused": (*_DELAYED, "waiting_for_delay", "none", "attempt_interrupted", "delayed"),
    "leased": ("active", "leased", "not_applicable", "none", "none", "running_attempt", "active"),
    "expired lease": (
        "active",
        "lease_expired_reclaimable",
        "not_applicable",
        "waiting_for_worker",
        "none",
        "attempt_interrupted",
        "active",
    ),
    "revoked lease": (
        "active",
        "lease_revoked",
        "not_applicable",
        "waiting_for_worker",
        "none",
        "attempt_interrupted",
        "active",
    ),
    "success": (*_TERMINAL, "success", "attempt_terminal", "completed"),
    "failed": (*_TERMINAL, "failed", "attempt_terminal", "failed"),
    "cancelled": (*_TERMINAL, "cancelled", "attempt_terminal", "cancelled"),
    "expired": (*_TERMINAL, "expired", "attempt_terminal", "expired"),
    "cancelled unclaimed": (*_TERMINAL, "cancelled", "none", "cancelled"),
    "expired unclaimed": (*_TERMINAL, "expired", "none", "expired"),
}
VECTORS["lapsed lease"] = VECTORS["leased"]  # it has expired, and no transaction has recorded it

RUNNABLE = ("first", "retry", "replay", "resumable", "delayed", "backoff", "paused")
ACTIVE = ("leased", "lapsed lease", "expired lease", "revoked lease")
TERMINAL = ("success", "failed", "cancelled", "expired", "cancelled unclaimed", "expired unclaimed")


def reach(db, clock, state, *, policy=POLICY):
    """
    A new execution in that state, alone in the database: its id, and the claim of it if there was one. The clock
    must be frozen. It moves by 10 ms for a lapsed lease, 1 s for a retry, 1000 s for what has expired.
    """
    eid = create(db, policy=policy, **({"delay_ms": 5000} if state == "delayed" else {}))
    if state in ("first", "delayed"):
        return eid, None
    if state == "cancelled unclaimed":
        one(db, "ff_cancel_execution", execution_id=eid)
        return eid, None
    if state == "expired unclaimed":
        clock.advance(1_000_000)
        one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")
        return eid, None
    row = take(db, lease_ttl_ms=10 if state in ("lapsed lease", "expired lease") else 30_000)
    handle = row["handle"]
    steps: dict[str, Callable[[], object]] = {
        "leased": lambda: None,
        "lapsed lease": lambda: clock.advance(10),
        "expired lease": lambda: (
            clock.advance(10),
            one(db, "ff_mark_lease_expired_if_due", execution_id=eid),
        ),
        "revoked lease": lambda: one(db, "ff_revoke_lease", execution_id=eid),
        "resumable": lambda: one(db, "ff_delay", handle=handle, delay_ms=0),
        "paused": lambda: one(db, "ff_delay", handle=handle, delay_ms=5000),
        "backoff": lambda: one(db, "ff_fail", handle=handle),
        "retry": lambda: (one(db, "ff_fail", handle=handle), clock.advance(1000), promote(db, eid)),
        "replay": lambda: (
            one(db, "ff_complete", handle=handle),
            one(db, "ff_replay_execution", execution_id=eid),
        ),
        "success": lambda: one(db, "ff_complete", handle=handle),
        "failed": lambda: one(db, "ff_fail", handle=handle, classification="permanent"),
        "cancelled": lambda: one(db, "ff_cancel", handle=handle),
        "expired": lambda: (
            clock.advance(1_000_000),
            one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline"),
        ),
    }
    steps[state]()
    assert vector(db, eid) == VECTORS[state]
    return eid, row


def promote(db, eid):
    return one(db, "ff_promote_delayed", execution_id=eid)


def vector(db, eid):
    """The seven state columns."""
    stored = execution(db, eid)
    return tuple(
        stored[column]
        for column in (
            "lifecycle_phase",
            "ownership_state",
            "eligibility_state",
            "blocking_reason",
            "terminal_outcome",
            "attempt_state",
            "public_state",
        )
    )


def attempts(db, eid):
    return table(
        db, "select * from ff_attempt where execution_id = %s order by attempt_index", eid.split("}:")[1]
    )


def fence(row):
    """The five arguments of a typed verb."""
    return {
        key: row[key] for key in ("execution_id", "attempt_index", "lease_id", "lease_epoch", "attempt_id")
    }


def details(db, eid, event_type):
    """Reason and details of the only event of that type."""
    (event,) = [
        event
        for event in table(db, "select * from ff_event where execution_id = %s", eid.split("}:")[1])
        if event["event_type"] == event_type
    ]
    return event["reason"], event["details"]


def everything(db):
    """All that is stored. Two of them are equal when nothing was written in between."""
    return [
        table(db, f"select t.*, t.xmin::text, t.ctid::text from {name} t order by t::text")
        for name in ("ff_execution", "ff_attempt_past", "ff_event_log", "ff_claim_grant")
    ]


def news(db, eid, before):
    """The events of an execution since `before`, which is what `events` said."""
    now = events(db, eid)
    assert now[: len(before)] == before
    return now[len(before) :]
