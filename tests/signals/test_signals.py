"""Delivering signals: effects, repetitions, refusals, approvals; and reading them back."""

import pytest

from tests.sql import create, events, execution, notifications, one, refused, rows, table, take, violations
from tests.suspensions.support import (
    APPROVAL,
    UNKNOWN,
    all_of,
    count,
    deliver,
    everything,
    run,
    signals,
    single,
    stored,
    suspend,
    suspended,
    waitpoint,
)


def approve(db, claim, point, name="approve", suffix="1", **args):
    return one(
        db,
        "ff_deliver_approval_signal",
        **{
            "execution_id": claim["execution_id"],
            "lane_id": "default",
            "waitpoint_id": point["waitpoint_id"],
            **args,
        },
        signal_name=name,
        idempotency_suffix=suffix,
    )


def test_the_signal_that_satisfies_the_condition_resumes_the_execution(db, clock):
    now = clock.freeze()
    claim, point = suspended(db)
    answer = deliver(db, claim, point, payload=b"\x00yes", source_identity="anna", correlation_id="c-1")
    assert answer == {
        "outcome": "accepted",
        "signal_id": answer["signal_id"],
        "effect": "resume_condition_satisfied",
        "matched": True,
        "resumed": True,
        "public_state": "resumable",
    }
    e = execution(db, claim["execution_id"])
    assert (e["current_suspension_id"], e["current_waitpoint_id"], e["open_waitpoints"]) == (None, None, 0)
    assert (e["attempt_state"], e["delay_until_ms"]) == ("attempt_interrupted", None)
    s = stored(db, "ff_suspension")
    assert (s["close_reason"], s["resume_trigger"], s["closer_signal_id"]) == (
        "resumed",
        "signal",
        answer["signal_id"],
    )
    assert (s["satisfied_at_ms"], s["closed_at_ms"], s["last_signal_at_ms"]) == (now, now, now)
    assert events(db, claim["execution_id"])[-2:] == ["signal/delivered", "suspension/resumed:signal"]
    (said,) = table(db, "select * from ff_event where family = 'signal'")
    assert (said["effect"], said["signal_id"], said["source_type"], said["source_identity"]) == (
        "satisfied",
        answer["signal_id"],
        "external",
        "anna",
    )
    assert said["details"] == {
        "signal_name": "approve",
        "signal_category": "external",
        "matched": True,
        "correlation_id": "c-1",
    }
    again = take(db)
    assert (again["handle_kind"], again["attempt_index"], again["attempt_id"]) == (
        "resumed",
        0,
        claim["attempt_id"],
    )
    assert (again["lease_epoch"], again["lease_id"] != claim["lease_id"]) == (2, True)
    for handle in (claim["handle"], again["handle"]):
        (seen,) = rows(db, "ff_observe_signals", handle=handle)
        assert (bytes(seen["payload"]), seen["source_identity"], seen["consumed"]) == (
            b"\x00yes",
            "anna",
            True,
        )
    assert violations(db) == []


def test_a_signal_that_does_not_match_is_kept_and_counted(db, clock):
    clock.freeze()
    claim, point = suspended(db)
    answer = deliver(db, claim, point, "maybe")
    assert (answer["effect"], answer["matched"], answer["resumed"], answer["public_state"]) == (
        "appended_to_waitpoint",
        False,
        False,
        "suspended",
    )
    w = stored(db, "ff_waitpoint")
    assert (w["signal_count"], w["matched_count"], w["last_signal_at_ms"]) == (1, 0, clock.now())
    assert table(db, "select effect from ff_event where family = 'signal'") == [{"effect": "appended"}]
    assert stored(db, "ff_suspension")["last_signal_at_ms"] == clock.now()
    assert violations(db) == []


@pytest.mark.parametrize(
    ("policy", "given", "delay"),
    [(0, None, 0), (500, None, 500), (500, 0, 0), (0, 700, 700), (500, 700, 700)],
)
def test_the_delay_is_the_deliverys_or_the_policys(db, clock, policy, given, delay):
    now = clock.freeze()
    claim, point = suspended(db, policy={"resume_delay_ms": policy})
    answer = deliver(db, claim, point, resume_delay_ms=given)
    e = execution(db, claim["execution_id"])
    if delay:
        assert (answer["public_state"], e["blocking_reason"]) == ("delayed", "waiting_for_resume_delay")
        assert e["delay_until_ms"] == now + delay
        clock.advance(delay - 1)
        assert rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w") == []
        assert violations(db) == []
        clock.advance(1)
    else:
        assert (answer["public_state"], e["delay_until_ms"]) == ("resumable", None)
    assert take(db)["attempt_id"] == claim["attempt_id"]


def test_the_attempt_clock_stands_still_while_it_waits(db, clock):
    clock.freeze()
    claim, point = suspended(db, create={"policy": {"timeout_policy": {"attempt_timeout_ms": 10_000}}})
    clock.advance(500_000)
    deliver(db, claim, point, resume_delay_ms=100)
    clock.advance(500)
    again = take(db)
    assert again["attempt_timeout_at_ms"] == clock.now() + 10_000


def test_a_resume_grant_continues_the_same_attempt(db):
    claim, point = suspended(db)
    worker = {"worker_id": "v", "worker_instance_id": "v-1"}
    with refused("execution_not_eligible"):
        one(db, "ff_issue_claim_grant", execution_id=claim["execution_id"], **worker)
    deliver(db, claim, point)
    grant = one(db, "ff_issue_claim_grant", execution_id=claim["execution_id"], **worker)
    assert grant["kind"] == "resume"
    again = one(
        db,
        "ff_claim_resumed_execution",
        execution_id=claim["execution_id"],
        grant_id=grant["grant_id"],
        **worker,
    )
    assert (again["attempt_id"], again["attempt_index"], again["lease_epoch"]) == (claim["attempt_id"], 0, 2)


# Repetitions.


def test_a_retry_of_the_very_signal_that_resumed_is_a_duplicate(db):
    for key in ({"signal_id": UNKNOWN}, {"idempotency_key": "k"}):
        claim, point = suspended(db)
        first = deliver(db, claim, point, payload=b"x", **key)
        assert first["resumed"]
        before = everything(db)
        expected = {**first, "outcome": "duplicate", "resumed": False}
        assert deliver(db, claim, point, payload=b"x", **key) == expected
        again = take(db)
        assert deliver(db, claim, point, payload=b"x", **key) == {**expected, "public_state": "active"}
        one(db, "ff_complete", handle=again["handle"])
        assert deliver(db, claim, point, payload=b"x", **key) == {**expected, "public_state": "completed"}
        assert len(before[5]) == len(everything(db)[5])
    assert violations(db) == []


def test_a_duplicate_writes_nothing_and_a_different_content_is_a_conflict(db):
    claim, point = suspended(db, count(9, "signals", ["a"]))
    deliver(db, claim, point, "x", payload=b"1", signal_id=UNKNOWN, idempotency_key="k")
    before = everything(db)
    for args in (
        {"signal_id": UNKNOWN},
        {"idempotency_key": "k"},
        {"signal_id": UNKNOWN, "idempotency_key": "other"},
    ):
        answer = deliver(db, claim, point, "x", payload=b"1", source_identity="another sender", **args)
        assert (answer["outcome"], answer["signal_id"], answer["matched"]) == ("duplicate", UNKNOWN, True)
    for name, payload in (("y", b"1"), ("x", b"2"), ("x", None), ("x", b"")):
        with refused("signal_conflict"):
            deliver(db, claim, point, name, payload=payload, signal_id=UNKNOWN)
        with refused("idempotency_conflict"):
            deliver(db, claim, point, name, payload=payload, idempotency_key="k")
    assert everything(db) == before


def test_no_payload_and_an_empty_one_are_different(db):
    claim, point = suspended(db, count(9, "signals", ["a"]))
    deliver(db, claim, point, "x", payload=b"", idempotency_key="k")
    with refused("idempotency_conflict"):
        deliver(db, claim, point, "x", idempotency_key="k")


def test_a_signal_id_belongs_to_the_execution_and_a_key_to_the_waitpoint(db):
    claim = run(db)
    a, b = suspend(db, claim["handle"], all_of(single("a", "z"), single("b", "z")))
    deliver(db, claim, a, "x", signal_id=UNKNOWN, idempotency_key="k")
    with refused("signal_conflict"):
        deliver(db, claim, b, "x", signal_id=UNKNOWN)
    assert deliver(db, claim, b, "x", idempotency_key="k")["outcome"] == "accepted"
    other, point = suspended(db, single("a", "z"))
    assert deliver(db, other, point, "x", signal_id=UNKNOWN)["outcome"] == "accepted"


def test_a_key_is_remembered_for_its_time(db, clock):
    clock.freeze()
    claim, point = suspended(db, count(9, "signals", ["a"]))

    def send(**args):
        return deliver(db, claim, point, "x", idempotency_key="k", **args)["outcome"]

    assert send(dedup_ttl_ms=100) == "accepted"
    clock.advance(99)
    assert send(dedup_ttl_ms=100) == "duplicate"
    clock.advance(1)
    assert send(dedup_ttl_ms=100) == "accepted"
    assert send(dedup_ttl_ms=0) == "accepted"
    assert send(dedup_ttl_ms=0) == "accepted"
    assert send() == "duplicate"
    assert deliver(db, claim, point, "x", idempotency_key="")["outcome"] == "accepted"
    assert deliver(db, claim, point, "x", idempotency_key="")["outcome"] == "accepted"
    assert violations(db) == []


# Refusals.


@pytest.mark.parametrize("name", ["", "__x", "a\nb", "x" * 257])
def test_a_signal_has_a_name(db, name):
    claim, point = suspended(db)
    with refused("invalid_signal_name"):
        deliver(db, claim, point, name)
    with refused("invalid_signal_name"):
        approve(db, claim, point, name)


@pytest.mark.parametrize("source", ["engine", "operator"])
def test_the_engines_own_sources_are_reserved(db, source):
    claim, point = suspended(db)
    with refused("invalid_source_type"):
        deliver(db, claim, point, source_type=source)


@pytest.mark.parametrize(
    "args",
    [
        {"dedup_ttl_ms": -1},
        {"dedup_ttl_ms": 2_592_000_001},
        {"dedup_ttl_ms": None},
        {"resume_delay_ms": -1},
        {"resume_delay_ms": 604_800_001},
        {"source_identity": "x" * 257},
        {"source_identity": None},
        {"source_type": ""},
        {"source_type": "x" * 257},
        {"signal_category": ""},
        {"correlation_id": "x" * 257},
        {"payload_encoding": "x" * 65},
        {"idempotency_key": "x" * 513},
    ],
)
def test_arguments_out_of_bounds_are_refused(db, args):
    claim, point = suspended(db)
    with refused("invalid_input") as refusal:
        deliver(db, claim, point, **args)
    assert refusal.detail["arg"] == f"p_{next(iter(args))}"


def test_lengths_are_counted_in_characters(db):
    claim, point = suspended(db)
    assert deliver(db, claim, point, "ü" * 256, source_identity="ü" * 256)["outcome"] == "accepted"


def test_required_arguments_are_required(db):
    claim, point = suspended(db)
    with refused("invalid_input"):
        deliver(db, claim, point, None)
    with refused("invalid_input"):
        deliver(db, claim, {**point, "waitpoint_id": None})
    with refused("invalid_input"):
        deliver(db, {"execution_id": None}, point)


def test_a_payload_has_a_limit_that_only_an_administrator_moves(db):
    claim, point = suspended(db)
    assert deliver(db, claim, point, "x", payload=b"x" * 65_536)["outcome"] == "accepted"
    with refused("payload_too_large") as refusal:
        deliver(db, claim, point, "x", payload=b"x" * 65_537)
    assert refusal.detail == {**refusal.detail, "size": 65_537, "limit": 65_536}
    with refused("payload_too_large"):
        approve(db, claim, point, payload=b"x" * 65_537)
    one(db, "ff_set_setting", name="max_payload_bytes", value="65537")
    assert deliver(db, claim, point, "x", payload=b"x" * 65_537)["outcome"] == "accepted"
    for bad in ("0", "x", "-1", ""):
        with refused("invalid_input"):
            one(db, "ff_set_setting", name="max_payload_bytes", value=bad)


def test_what_has_ended_takes_no_signals(db):
    claim, point = suspended(db)
    one(db, "ff_cancel_execution", execution_id=claim["execution_id"])
    with refused("target_not_signalable") as refusal:
        deliver(db, claim, point)
    assert refusal.detail["public_state"] == "cancelled"


def test_an_active_waitpoint_is_closed_from_its_deadline_on_without_a_sweep(db, clock):
    clock.freeze()
    claim, point = suspended(db, timeout_ms=1000)
    clock.advance(999)
    assert deliver(db, claim, point, "x")["outcome"] == "accepted"
    clock.advance(1)
    with refused("waitpoint_closed") as refusal:
        deliver(db, claim, point)
    assert refusal.detail["close_reason"] == "deadline_passed"


def test_an_execution_past_its_deadline_takes_no_signals_even_without_a_sweep(db, clock):
    clock.freeze()
    claim, point = suspended(db, create={"policy": {"timeout_policy": {"execution_deadline_ms": 1000}}})
    clock.advance(1000)
    with refused("target_not_signalable"):
        deliver(db, claim, point)


def test_an_execution_receives_as_many_signals_as_its_policy_says(db):
    claim, point = suspended(db, single("a", "z"), create={"policy": {"max_signals_per_execution": 2}})
    for n in range(2):
        deliver(db, claim, point, "x", idempotency_key=str(n))
    with refused("signal_limit_exceeded") as refusal:
        deliver(db, claim, point, "x")
    assert refusal.detail["limit"] == 2
    assert deliver(db, claim, point, "x", idempotency_key="1")["outcome"] == "duplicate"


# Approvals.


def test_an_operator_approves_without_a_token_even_when_the_key_is_dead(db):
    claim, point = suspended(db)
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k2", grace_ms=0)
    answer = approve(db, claim, point, operator_id="anna", payload=b"ok")
    assert (answer["outcome"], answer["resumed"], answer["public_state"]) == ("accepted", True, "resumable")
    (g,) = signals(db, claim)
    assert (g["signal_category"], g["source_type"], g["source_identity"]) == ("approval", "operator", "anna")
    assert stored(db, "ff_signal")["idempotency_key"] == "approval:approve:1"
    assert events(db, claim["execution_id"])[-3:] == [
        "signal/delivered",
        "suspension/resumed:signal",
        "operator/approval_delivered",
    ]
    before = everything(db)
    assert approve(db, claim, point, operator_id="ben", payload=b"ok") == {
        **answer,
        "outcome": "duplicate",
        "resumed": False,
    }
    assert everything(db) == before
    assert violations(db) == []


def test_an_approval_without_a_name_is_the_logins(db):
    claim, point = suspended(db)
    approve(db, claim, point, operator_id="")
    (user,) = table(db, "select session_user::text as name")
    assert signals(db, claim)[0]["source_identity"] == user["name"]


def test_operators_are_told_apart(db):
    claim, point = suspended(db, count(2, "sources", ["a"]))
    for suffix, operator, resumed in (("1", "anna", False), ("2", "anna", False), ("3", "ben", True)):
        assert approve(db, claim, point, "ok", suffix, operator_id=operator)["resumed"] is resumed


def test_an_approval_is_checked_in_its_order(db):
    claim, point = suspended(db)
    other, others = suspended(db)
    with refused("invalid_lane_id"):
        approve(db, claim, point, lane_id="")
    with refused("execution_not_found"):
        approve(db, claim, point, execution_id=f"{{fp:7}}:{UNKNOWN}", lane_id="x")
    with refused("lane_mismatch"):
        approve(db, claim, {"waitpoint_id": UNKNOWN}, lane_id="x")
    for point_of_others in (UNKNOWN, others["waitpoint_id"]):
        with refused("waitpoint_not_found"):
            approve(db, claim, {"waitpoint_id": point_of_others})
    for suffix in ("", "x" * 257, None):
        with refused("invalid_input"):
            approve(db, claim, point, suffix=suffix)
    with refused("invalid_input"):
        approve(db, claim, point, operator_id="x" * 257)
    one(db, "ff_cancel_execution", execution_id=other["execution_id"])
    with refused("target_not_signalable"):
        approve(db, other, others)


def test_an_approval_repeats_by_suffix_and_conflicts_by_content(db):
    claim, point = suspended(db, count(5, "signals", ["a"]))
    assert approve(db, claim, point, "ok", "1")["outcome"] == "accepted"
    assert approve(db, claim, point, "ok", "1")["outcome"] == "duplicate"
    with refused("idempotency_conflict"):
        approve(db, claim, point, "ok", "1", payload=b"x")
    assert approve(db, claim, point, "no", "1")["outcome"] == "accepted"
    assert approve(db, claim, point, "ok", "2")["outcome"] == "accepted"
    assert len([e for e in events(db, claim["execution_id"]) if e == "operator/approval_delivered"]) == 3


@pytest.mark.parametrize("payload", [b"yes", b"forged"])
def test_the_key_of_a_token_holder_does_not_pre_empt_an_approval(db, payload):
    claim, point = suspended(db, count(5, "signals", ["a"]))
    deliver(db, claim, point, "ok", payload=payload, idempotency_key="approval:ok:1")
    assert approve(db, claim, point, "ok", "1", payload=b"yes")["outcome"] == "accepted"
    assert approve(db, claim, point, "ok", "1", payload=b"yes")["outcome"] == "duplicate"
    assert violations(db) == []


def test_the_key_of_an_approval_does_not_hide_the_signal_of_a_token_holder(db):
    claim, point = suspended(db, count(5, "signals", ["a"]))
    approve(db, claim, point, "ok", "1")
    for outcome in ("accepted", "duplicate"):
        answer = deliver(db, claim, point, "ok", idempotency_key="approval:ok:1")
        assert answer["outcome"] == outcome
    assert [g["source_type"] for g in signals(db, claim)] == ["operator", "external"]
    assert violations(db) == []


def test_a_token_holder_cannot_repeat_an_approval_by_its_signal_id(db):
    claim, point = suspended(db, count(5, "signals", ["a"]))
    approval = approve(db, claim, point, "ok", "1")
    with refused("signal_conflict"):
        deliver(db, claim, point, "ok", signal_id=approval["signal_id"])
    assert len(signals(db, claim)) == 1


def test_name_and_suffix_of_an_approval_are_told_apart_wherever_a_colon_stands(db):
    claim, point = suspended(db, count(9, "signals", ["a"]))
    decisions = [
        ("a", "b:c"),
        ("a:b", "c"),
        ("a%3Ab", "c"),
        ("a:", "b:c"),
        ("a", ":b:c"),
        ("a%", "b"),
        ("a%25", "b"),
    ]
    for name, suffix in decisions:
        assert approve(db, claim, point, name, suffix)["outcome"] == "accepted", (name, suffix)
    for name, suffix in decisions:
        assert approve(db, claim, point, name, suffix)["outcome"] == "duplicate", (name, suffix)
    assert violations(db) == []


def test_an_approval_does_not_count_as_one_of_the_signals_that_an_execution_may_receive(db):
    condition = count(2, "signals", ["a"], {"by_name": "ok"})
    claim, point = suspended(db, condition, create={"policy": {"max_signals_per_execution": 2}})
    assert approve(db, claim, point, "ok", "1")["outcome"] == "accepted"
    for _ in range(2):
        deliver(db, claim, point, "noise")
    with refused("signal_limit_exceeded"):
        deliver(db, claim, point, "noise")
    assert approve(db, claim, point, "ok", "2")["resumed"] is True
    assert violations(db) == []
    db.execute("update ff_execution set policy = '{\"max_signals_per_execution\": 1}'")
    assert [v["invariant"] for v in violations(db)] == ["signal_limit"]


# Reading.


def test_signals_are_listed_in_order_by_page(db):
    claim = run(db)
    a, b = suspend(db, claim["handle"], count(9, "signals", ["a", "b"], {"by_name": "x"}))
    for n in range(5):
        deliver(db, claim, (a, b)[n % 2], "x" if n else "y", payload=bytes([n]))
    listed = signals(db, claim)
    assert [(g["seq"], g["waitpoint_key"], bytes(g["payload"])) for g in listed] == [
        (n + 1, "ab"[n % 2], bytes([n])) for n in range(5)
    ]
    assert [g["effect"] for g in listed] == ["appended_to_waitpoint"] * 5
    page = rows(db, "ff_list_signals", execution_id=claim["execution_id"], after=2, limit=2)
    assert [g["seq"] for g in page] == [3, 4]
    assert rows(db, "ff_list_signals", execution_id=f"{{fp:7}}:{UNKNOWN}") == []
    for bad in ({"after": None}, {"limit": 1001}):
        with refused("invalid_input"):
            rows(db, "ff_list_signals", execution_id=claim["execution_id"], **bad)
    seen = rows(db, "ff_observe_signals", handle=claim["handle"])
    assert [g["signal_id"] for g in seen] == [g["signal_id"] for g in listed]
    seen = rows(db, "ff_observe_signals", handle=claim["handle"], matched_only=True)
    assert [g["signal_id"] for g in seen] == [g["signal_id"] for g in listed[1:]]


def test_a_worker_observes_the_latest_suspension_or_the_one_it_names(db):
    claim, first = suspended(db)
    deliver(db, claim, first, payload=b"1")
    again = take(db)
    (second,) = suspend(db, again["handle"])
    assert rows(db, "ff_observe_signals", handle=again["handle"]) == []
    deliver(db, claim, second, payload=b"2")
    for handle in (claim["handle"], again["handle"], take(db)["handle"]):
        assert [bytes(g["payload"]) for g in rows(db, "ff_observe_signals", handle=handle)] == [b"2"]
        found = rows(db, "ff_observe_signals", handle=handle, suspension_id=first["suspension_id"])
        assert [(bytes(g["payload"]), g["suspension_id"]) for g in found] == [(b"1", first["suspension_id"])]
    other, others = suspended(db)
    deliver(db, other, others)
    assert rows(db, "ff_observe_signals", handle=claim["handle"], suspension_id=others["suspension_id"]) == []


def test_a_handle_of_an_older_attempt_or_a_made_up_one_observes_nothing(db):
    claim, point = suspended(
        db,
        create={"policy": {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}},
    )
    deliver(db, claim, point)
    again = take(db)
    one(db, "ff_fail", handle=again["handle"])
    assert len(rows(db, "ff_observe_signals", handle=again["handle"])) == 1
    third = take(db)
    assert third["attempt_index"] == 1
    for handle in (claim["handle"], again["handle"], third["handle"]):
        assert rows(db, "ff_observe_signals", handle=handle) == []
    forged = claim["handle"].replace(str(claim["attempt_id"]), str(UNKNOWN))
    assert rows(db, "ff_observe_signals", handle=forged) == []
    with refused("invalid_handle"):
        rows(db, "ff_observe_signals", handle="x")
    with refused("invalid_input"):
        rows(db, "ff_observe_signals", handle=third["handle"], matched_only=None)


def test_signals_that_no_run_has_seen_are_observed_by_the_attempt_after_a_crash(db, clock):
    claim, point = suspended(db)
    deliver(db, claim, point, payload=b"1")
    assert take(db)["handle_kind"] == "resumed"
    for _ in range(2):
        clock.advance(86_400_000)
        again = take(db)
        assert again["handle_kind"] == "reclaimed"
        for suspension_id in (None, point["suspension_id"]):
            seen = rows(db, "ff_observe_signals", handle=again["handle"], suspension_id=suspension_id)
            assert [bytes(g["payload"]) for g in seen] == [b"1"]
    (other,) = suspend(db, again["handle"])
    assert rows(db, "ff_observe_signals", handle=again["handle"]) == []
    deliver(db, claim, other, payload=b"2")
    assert [bytes(g["payload"]) for g in rows(db, "ff_observe_signals", handle=take(db)["handle"])] == [b"2"]


def test_muted_events_change_nothing_else(db):
    for family in ("signal", "suspension"):
        one(db, "ff_set_event_family", family=family, muted=["*"])
    claim, point = suspended(db)
    assert deliver(db, claim, point)["resumed"]
    assert table(db, "select 1 from ff_event where family in ('signal', 'suspension')") == []
    assert violations(db) == []


@pytest.mark.own_session("LISTEN")
def test_each_family_is_notified_once(db, connect):
    create(db)
    take(db)  # a new lane notifies for its first execution
    listener = connect()
    listener.execute("listen ff_event_signal")
    listener.execute("listen ff_event_suspension")
    listener.execute("listen ff_lane")
    claim, point = suspended(db)
    rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w")  # arms the lane
    deliver(db, claim, point)
    assert sorted(channel for channel, _ in notifications(listener)) == [
        "ff_event_signal",
        "ff_event_suspension",
        "ff_event_suspension",
        "ff_lane",
    ]


def test_signals_of_a_suspended_execution_that_was_created_in_a_lane_do_not_touch_others(db):
    create(db, "other")
    claim, point = suspended(db, APPROVAL)
    pending = waitpoint(db, run(db)["handle"])
    deliver(db, claim, point)
    assert stored(db, "ff_waitpoint", waitpoint_id=pending["waitpoint_id"])["state"] == "pending"
