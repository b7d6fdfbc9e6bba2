"""Ends of a suspension that are not a signal: an operator, a timeout, the end of the attempt in all its forms."""

import pytest

from tests.executions.states import RUNNABLE, TERMINAL, reach, vector
from tests.sql import claim as claim_next
from tests.sql import create, events, execution, one, refused, rows, table, take, violations
from tests.suspensions.support import (
    OPERATOR_ONLY,
    TIMEOUT_ONLY,
    UNKNOWN,
    all_of,
    deliver,
    everything,
    expire,
    run,
    seed,
    signals,
    single,
    stored,
    suspend,
    suspended,
    waitpoint,
)


def resume(db, claim, **args):
    return one(db, "ff_resume_execution", execution_id=claim["execution_id"], **args)


# Operators.


@pytest.mark.parametrize("condition", [single("a"), OPERATOR_ONLY])
@pytest.mark.parametrize("trigger", ["operator", "policy"])
def test_an_operator_ends_the_wait_whatever_the_condition_says(db, clock, condition, trigger):
    clock.freeze()
    claim, point = suspended(db, condition, policy={"close_waitpoint_on_resume": False})
    assert resume(db, claim, trigger=trigger) == {
        "outcome": "resumed",
        "public_state": "resumable",
        "delay_until_ms": None,
    }
    s = stored(db, "ff_suspension")
    (user,) = table(db, "select session_user::text as name")
    assert (s["close_reason"], s["resume_trigger"], s["resumed_by"]) == (
        "operator_resume",
        trigger,
        user["name"],
    )
    w = stored(db, "ff_waitpoint")
    assert (w["state"], w["close_reason"]) == ("closed", "operator_resume")
    assert events(db, claim["execution_id"])[-2:] == [
        f"suspension/resumed:{trigger}",
        f"operator/resumed:{trigger}",
    ]
    with refused("waitpoint_closed"):
        deliver(db, claim, point)
    with refused("execution_not_suspended") as refusal:
        resume(db, claim)
    assert refusal.detail["public_state"] == "resumable"
    assert take(db)["attempt_id"] == claim["attempt_id"]
    assert violations(db) == []


def test_an_operator_resumes_after_a_delay_that_is_kept(db, clock):
    now = clock.freeze()
    claim, _ = suspended(db)
    answer = resume(db, claim, resume_delay_ms=5000)
    assert answer == {"outcome": "resumed", "public_state": "delayed", "delay_until_ms": now + 5000}
    assert vector(db, claim["execution_id"])[2:4] == ("not_eligible_until_time", "waiting_for_resume_delay")
    clock.advance(4999)
    assert claim_next(db) is None
    clock.advance(1)
    assert one(db, "ff_promote_delayed", execution_id=claim["execution_id"])["public_state"] == "resumable"
    assert take(db)["attempt_id"] == claim["attempt_id"]
    assert violations(db) == []


def test_signals_are_treated_by_policy_when_an_operator_resumes(db):
    claim, point = suspended(db, all_of(single("a", "x"), single("a", "z")))
    deliver(db, claim, point, "x")
    deliver(db, claim, point, "noise")
    resume(db, claim)
    assert [(g["consumed"], g["discarded"]) for g in signals(db, claim)] == [(True, False), (False, True)]
    assert violations(db) == []


@pytest.mark.parametrize(
    "args",
    [
        {"trigger": "signal"},
        {"trigger": None},
        {"resume_delay_ms": -1},
        {"resume_delay_ms": 604_800_001},
        {"resume_delay_ms": None},
    ],
)
def test_a_resume_has_a_form(db, args):
    claim, _ = suspended(db)
    with refused("invalid_input"):
        resume(db, claim, **args)


@pytest.mark.parametrize("state", [*RUNNABLE, "leased", *TERMINAL])
def test_only_what_is_suspended_is_resumed(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    with refused("execution_not_suspended") as refusal:
        resume(db, {"execution_id": eid})
    assert refusal.detail["public_state"] == execution(db, eid)["public_state"]
    assert expire(db, {"execution_id": eid})["outcome"] == "not_suspended"
    assert everything(db) == before


def test_what_does_not_exist_is_not_found(db):
    with refused("execution_not_found"):
        resume(db, {"execution_id": f"{{fp:7}}:{UNKNOWN}"})
    assert expire(db, {"execution_id": f"{{fp:7}}:{UNKNOWN}"}) == {
        "outcome": "not_found",
        "public_state": None,
    }
    with refused("invalid_execution_id"):
        expire(db, {"execution_id": "x"})


# Timeouts.

RETRIES = {"policy": {"retry_policy": {"max_retries": 5, "backoff": {"type": "fixed", "delay_ms": 0}}}}


@pytest.mark.parametrize(
    ("behavior", "outcome", "attempt", "close_reason"),
    [
        ("fail", "failed", ("ended_failure", "failure"), "timed_out_fail"),
        ("cancel", "cancelled", ("ended_cancelled", "cancelled"), "timed_out_cancel"),
        ("expire", "expired", ("ended_failure", "expired"), "timed_out_expire"),
    ],
)
def test_a_timeout_ends_the_execution(db, clock, behavior, outcome, attempt, close_reason):
    clock.freeze()
    claim = run(db, **RETRIES)
    extra = waitpoint(db, claim["handle"], "extra")
    (point,) = suspend(db, claim["handle"], timeout_ms=1000, timeout_behavior=behavior)
    deliver(db, claim, point, "x")
    clock.advance(999)
    assert expire(db, claim) == {"outcome": "not_due", "public_state": "suspended"}
    clock.advance(1)
    assert expire(db, claim) == {"outcome": outcome, "public_state": outcome}
    e = execution(db, claim["execution_id"])
    assert (e["lifecycle_phase"], e["terminal_outcome"], e["attempt_state"]) == (
        "terminal",
        outcome,
        "attempt_terminal",
    )
    assert (e["open_waitpoints"], e["current_suspension_id"], e["current_waitpoint_id"]) == (0, None, None)
    if behavior == "fail":
        assert e["failure_reason"] == "suspension_timeout:fail"
    if behavior == "cancel":
        assert e["cancelled_by"] == "system_timeout_policy"
    a = stored(db, "ff_attempt")
    assert (a["state"], a["outcome"]) == attempt
    assert stored(db, "ff_suspension")["close_reason"] == close_reason
    assert {(w["state"], w["close_reason"]) for w in table(db, "select * from ff_waitpoint")} == {
        ("closed", close_reason)
    }
    assert [g["discarded"] for g in signals(db, claim)] == [True]
    said = events(db, claim["execution_id"])
    assert f"suspension/timed_out:{behavior}" in said
    assert [e for e in said if e.startswith("completion/")] == [
        f"completion/{outcome}:suspension_timeout:{behavior}"
    ]
    assert expire(db, claim) == {"outcome": "not_suspended", "public_state": outcome}
    for late in (point, extra):
        with refused("target_not_signalable"):
            deliver(db, claim, late)
    assert violations(db) == []


@pytest.mark.parametrize("delay", [0, 700])
def test_a_timeout_may_resume_with_a_signal_of_its_own(db, clock, delay):
    now = clock.freeze()
    claim, point = suspended(
        db,
        TIMEOUT_ONLY,
        timeout_ms=1000,
        timeout_behavior="auto_resume_with_timeout_signal",
        policy={"resume_delay_ms": delay},
    )
    deliver(db, claim, point, "noise")
    clock.advance(1000)
    state = "delayed" if delay else "resumable"
    assert expire(db, claim) == {"outcome": "auto_resumed", "public_state": state}
    assert execution(db, claim["execution_id"])["delay_until_ms"] == (now + 1000 + delay if delay else None)
    s = stored(db, "ff_suspension")
    assert (s["close_reason"], s["resume_trigger"]) == ("timed_out_auto_resume", "auto_resume")
    noise, timeout = signals(db, claim)
    assert (timeout["signal_name"], timeout["signal_category"]) == ("timeout", "system")
    assert (timeout["source_type"], timeout["source_identity"]) == ("engine", "suspension_timeout")
    assert (timeout["matched"], timeout["consumed"], timeout["waitpoint_id"]) == (
        True,
        True,
        point["waitpoint_id"],
    )
    assert (noise["matched"], noise["discarded"]) == (False, True)
    assert events(db, claim["execution_id"])[-1] == "suspension/resumed:auto_resume"
    assert expire(db, claim)["outcome"] == "not_suspended"
    clock.advance(delay)
    again = take(db)
    assert again["attempt_id"] == claim["attempt_id"]
    seen = rows(db, "ff_observe_signals", handle=again["handle"])
    assert [g["signal_name"] for g in seen] == ["noise", "timeout"]
    assert violations(db) == []


def test_a_timeout_may_be_escalated_and_signals_can_still_satisfy_it(db, clock):
    clock.freeze()
    claim, point = suspended(db, timeout_ms=1000, timeout_behavior="escalate")
    clock.advance(1000)
    with refused("waitpoint_closed"):
        deliver(db, claim, point)
    assert expire(db, claim) == {"outcome": "escalated", "public_state": "suspended"}
    assert execution(db, claim["execution_id"])["blocking_reason"] == "paused_by_operator"
    s = stored(db, "ff_suspension")
    assert (s["reason_code"], s["timeout_at_ms"], s["escalated_at_ms"], s["closed_at_ms"]) == (
        "waiting_for_operator_review",
        None,
        clock.now(),
        None,
    )
    assert stored(db, "ff_waitpoint")["expires_at_ms"] is None
    assert events(db, claim["execution_id"])[-2:] == [
        "suspension/escalated:waiting_for_signal",
        "operator/suspension_escalated:waiting_for_signal",
    ]
    (listed,) = rows(db, "ff_list_suspended", reason_code="waiting_for_operator_review")
    assert listed["escalated_at_ms"] == clock.now()
    assert expire(db, claim) == {"outcome": "not_due", "public_state": "suspended"}
    assert violations(db) == []
    assert deliver(db, claim, point)["resumed"] is True
    assert violations(db) == []


def test_a_resumed_execution_has_lost_its_timeout(db, clock):
    clock.freeze()
    claim, point = suspended(db, timeout_ms=1000)
    deliver(db, claim, point)
    clock.advance(1000)
    assert expire(db, claim)["outcome"] == "not_suspended"
    again = take(db)
    assert expire(db, claim)["outcome"] == "not_suspended"
    one(db, "ff_complete", handle=again["handle"])
    assert expire(db, claim) == {"outcome": "not_suspended", "public_state": "completed"}


def test_without_a_timeout_it_waits_for_ever(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    clock.advance(10**12)
    assert expire(db, claim)["outcome"] == "not_due"
    assert deliver(db, claim, point)["resumed"]


def test_the_attempt_timeout_plays_no_part_and_the_execution_deadline_does(db, clock):
    clock.freeze()
    policy = {"timeout_policy": {"attempt_timeout_ms": 100, "execution_deadline_ms": 5000}}
    claim, _ = suspended(db, create={"policy": policy}, timeout_ms=10_000)
    clock.advance(4999)
    for phase in ("attempt_timeout", "execution_deadline"):
        answer = one(db, "ff_expire_execution", execution_id=claim["execution_id"], phase=phase)
        assert answer["outcome"] == "not_due"
    clock.advance(1)
    answer = one(db, "ff_expire_execution", execution_id=claim["execution_id"], phase="execution_deadline")
    assert answer["outcome"] == "expired"
    assert stored(db, "ff_suspension")["close_reason"] == "attempt_ended"
    assert stored(db, "ff_waitpoint")["close_reason"] == "attempt_ended"
    assert [e for e in events(db, claim["execution_id"]) if e.startswith("suspension/")] == [
        "suspension/suspended:waiting_for_signal"
    ]
    assert violations(db) == []


# Every end of an attempt closes what it left open.


def open_ends(db):
    return (
        [w["close_reason"] for w in table(db, "select * from ff_waitpoint")],
        [s["close_reason"] for s in table(db, "select * from ff_suspension")],
        [g["discarded"] for g in table(db, "select * from ff_signal")],
        {e["open_waitpoints"] for e in table(db, "select * from ff_exec_core")},
    )


def test_cancelling_a_suspended_execution_closes_all_of_it(db):
    claim = run(db)
    extra = waitpoint(db, claim["handle"], "extra")
    deliver(db, claim, extra)
    (point,) = suspend(db, claim["handle"])
    answer = one(db, "ff_cancel_execution", execution_id=claim["execution_id"])
    assert answer["cancelled_from"] == "suspended"
    assert open_ends(db) == (["attempt_ended"] * 2, ["attempt_ended"], [True], {0})
    assert stored(db, "ff_attempt")["state"] == "ended_cancelled"
    for late in (point, extra):
        with refused("target_not_signalable"):
            deliver(db, claim, late, "x")
    assert execution(db, claim["execution_id"])["public_state"] == "cancelled"
    assert violations(db) == []


ENDS = {
    "complete": lambda db, c: one(db, "ff_complete", handle=c["handle"]),
    "complete_many": lambda db, c: rows(db, "ff_complete_many", handles=[c["handle"], c["handle"]]),
    "complete_execution": lambda db, c: one(
        db, "ff_complete_execution", execution_id=c["execution_id"], source="operator_override"
    ),
    "fail with a retry": lambda db, c: one(db, "ff_fail", handle=c["handle"]),
    "fail for good": lambda db, c: one(db, "ff_fail", handle=c["handle"], classification="permanent"),
    "cancel": lambda db, c: one(db, "ff_cancel", handle=c["handle"]),
    "revoke and reclaim": lambda db, c: (
        one(db, "ff_revoke_lease", execution_id=c["execution_id"]),
        take(db),
    ),
    "attempt timeout": None,
    "reclaim": None,
    "deadline": None,
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_of_a_running_attempt_closes_its_pending_waitpoints(db, clock, end):
    clock.freeze()
    claim = run(
        db,
        policy={
            **RETRIES["policy"],
            "timeout_policy": {"attempt_timeout_ms": 40_000, "execution_deadline_ms": 100_000},
        },
    )
    deliver(db, claim, waitpoint(db, claim["handle"], expires_in_ms=10**6))
    if end == "reclaim":
        clock.advance(30_000)
        assert take(db)["handle_kind"] == "reclaimed"
    elif end == "attempt timeout":
        clock.advance(40_000)
        one(db, "ff_expire_execution", execution_id=claim["execution_id"], phase="attempt_timeout")
    elif end == "deadline":
        clock.advance(100_000)
        assert claim_next(db) is None
    else:
        ENDS[end](db, claim)
    assert open_ends(db) == (["attempt_ended"], [], [True], {0})
    assert violations(db) == []


def test_a_batch_completes_executions_with_and_without_open_waitpoints(db):
    claims = [run(db) for _ in range(4)]
    for claim in claims[::2]:
        waitpoint(db, claim["handle"])
    handles = [claim["handle"] for claim in claims]
    found = rows(
        db, "ff_complete_many", handles=[*handles, handles[0]], results=[b"a", b"b", b"c", b"d", b"e"]
    )
    assert [r["outcome"] for r in found] == ["completed"] * 5
    assert [r["replayed"] for r in found] == [False] * 4 + [True]
    results = table(db, "select result from ff_attempt order by started_at_ms, lease_id")
    assert {bytes(r["result"]) for r in results} == {b"a", b"b", b"c", b"d"}
    assert open_ends(db)[0] == ["attempt_ended"] * 2
    assert violations(db) == []


def test_a_pause_keeps_pending_waitpoints(db, clock):
    clock.freeze()
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    one(db, "ff_delay", handle=claim["handle"], delay_ms=10)
    assert deliver(db, claim, point)["effect"] == "buffered_for_pending_waitpoint"
    clock.advance(10)
    again = take(db)
    (row,) = suspend(db, again["handle"], waitpoints=[{"use_pending": str(point["waitpoint_id"])}])
    assert row["outcome"] == "already_satisfied"
    assert violations(db) == []


def test_a_replayed_execution_starts_without_waitpoints_and_keeps_its_history(db):
    claim, point = suspended(db)
    deliver(db, claim, point)
    one(db, "ff_complete", handle=take(db)["handle"])
    one(db, "ff_replay_execution", execution_id=claim["execution_id"])
    again = take(db)
    assert again["attempt_index"] == 1
    (row,) = suspend(db, again["handle"])
    assert deliver(db, again, row)["outcome"] == "accepted"
    assert [g["seq"] for g in signals(db, claim)] == [1, 2]
    with refused("waitpoint_closed"):
        deliver(db, claim, point)
    assert violations(db) == []


def test_retention_removes_what_hangs_off_an_execution(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    deliver(db, claim, point)
    one(db, "ff_complete", handle=take(db)["handle"])
    suspended(db)
    clock.advance(10**9)
    assert one(db, "ff_trim_retention", retention_ms=1000)["processed"] == 1
    for name in ("ff_suspension", "ff_waitpoint", "ff_exec_core"):
        assert len(table(db, f"select * from {name}")) == 1
    assert table(db, "select * from ff_signal") == []
    with refused("invalid_token"):
        deliver(db, claim, point)
    assert violations(db) == []


@pytest.mark.parametrize("end", ["ff_delay", "ff_fail", "ff_complete", "ff_cancel", "ff_renew"])
def test_the_handle_that_suspended_can_do_nothing_else(db, end):
    claim, _ = suspended(db)
    before = everything(db)
    with refused("execution_not_active"):
        one(db, end, handle=claim["handle"], **({"delay_ms": 1} if end == "ff_delay" else {}))
    assert everything(db) == before


def test_a_suspended_execution_is_never_handed_out(db):
    seed(db)
    suspended(db)
    create(db)
    assert take(db)["handle_kind"] == "fresh"
    assert rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w") == []


def test_what_else_is_done_to_a_suspended_execution_leaves_it_suspended(db):
    claim, point = suspended(db)
    eid = claim["execution_id"]
    worker = {"worker_id": "v", "worker_instance_id": "v-1"}
    assert one(db, "ff_revoke_lease", execution_id=eid)["reason"] == "no_active_lease"
    assert one(db, "ff_change_priority", execution_id=eid, priority=7)["outcome"] == "changed"
    assert one(db, "ff_issue_reclaim_grant", execution_id=eid, **worker)["outcome"] == "not_reclaimable"
    assert one(db, "ff_promote_delayed", execution_id=eid)["outcome"] == "not_delayed"
    assert one(db, "ff_mark_lease_expired_if_due", execution_id=eid)["reason"] == "not_active"
    one(db, "ff_set_execution_tag", execution_id=eid, key="a.b", value="c")
    for function in ("ff_complete_execution", "ff_fail_execution"):
        with refused("execution_not_active"):
            one(db, function, execution_id=eid, source="operator_override")
    with refused("execution_not_terminal"):
        one(db, "ff_replay_execution", execution_id=eid)
    with refused("execution_not_leaseable"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, grant_id=UNKNOWN, **worker)
    assert one(db, "ff_describe_execution", execution_id=eid)["public_state"] == "suspended"
    assert deliver(db, claim, point)["resumed"]
    assert take(db)["priority"] == 7
    assert violations(db) == []


def test_cancel_of_a_suspended_execution_by_its_old_handle_is_refused(db):
    claim, _ = suspended(db)
    with refused("execution_not_active"):
        one(
            db,
            "ff_cancel_execution",
            execution_id=claim["execution_id"],
            source="lease_holder",
            lease_id=claim["lease_id"],
            lease_epoch=claim["lease_epoch"],
            attempt_id=claim["attempt_id"],
        )
