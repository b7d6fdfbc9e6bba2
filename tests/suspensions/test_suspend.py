"""Suspending: what is stored, what is refused in which order, what a repetition answers."""

import uuid

import pytest
from psycopg.types.json import Jsonb

from tests.executions.states import ACTIVE, RUNNABLE, TERMINAL, fence, reach, vector
from tests.sql import claim as claim_next
from tests.sql import create, events, execution, one, refused, rows, table, take, violations
from tests.suspensions.support import (
    APPROVAL,
    OPERATOR_ONLY,
    UNKNOWN,
    all_of,
    count,
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

REASONS = {
    "waiting_for_signal": "waiting_for_signal",
    "waiting_for_approval": "waiting_for_approval",
    "waiting_for_callback": "waiting_for_callback",
    "waiting_for_tool_result": "waiting_for_tool_result",
    "waiting_for_operator_review": "paused_by_operator",
    "paused_by_policy": "paused_by_policy",
    "paused_by_budget": "waiting_for_budget",
    "step_boundary": "waiting_for_signal",
    "manual_pause": "paused_by_operator",
}


def by_triple(db, claim, condition=APPROVAL, **args):
    return rows(db, "ff_suspend_execution", **{**fence(claim), **args}, condition=Jsonb(condition))


def test_the_attempt_pauses_and_the_lease_ends(db, clock):
    now = clock.freeze()
    claim = run(
        db, policy={"timeout_policy": {"attempt_timeout_ms": 10_000, "execution_deadline_ms": 50_000}}
    )
    clock.advance(4000)
    now += 4000
    (row,) = suspend(
        db,
        claim["handle"],
        reason_code="waiting_for_approval",
        reason_detail="the boss",
        timeout_ms=9000,
        continuation_pointer="step 7",
    )
    assert row == {
        "outcome": "suspended",
        "replayed": False,
        "suspension_id": row["suspension_id"],
        "ordinal": 0,
        "waitpoint_id": row["waitpoint_id"],
        "waitpoint_key": "approval",
        "waitpoint_token": row["waitpoint_token"],
        "timeout_at_ms": now + 9000,
        "handle": claim["handle"],
    }
    eid = claim["execution_id"]
    assert vector(db, eid) == (
        "suspended",
        "unowned",
        "not_applicable",
        "waiting_for_approval",
        "none",
        "attempt_interrupted",
        "suspended",
    )
    e = execution(db, eid)
    assert e["current_suspension_id"] == row["suspension_id"]
    assert e["current_waitpoint_id"] == row["waitpoint_id"]
    assert e["open_waitpoints"] == 1
    assert e["attempt_remaining_ms"] == 6000
    assert e["attempt_timeout_at_ms"] is None
    assert e["deadline_at_ms"] == now - 4000 + 50_000
    assert e["lease_epoch"] == 1
    assert e["current_attempt_id"] == claim["attempt_id"]
    assert [
        e[c] for c in ("lease_id", "lease_ttl_ms", "lease_expires_at_ms", "lease_check_at_ms", "worker_id")
    ] == [None] * 5
    a = stored(db, "ff_attempt")
    assert (a["state"], a["release_op"], a["suspended_at_ms"]) == ("suspended", "suspend", now)
    s = stored(db, "ff_suspension")
    assert (s["lease_id"], s["lease_epoch"], s["attempt_id"], s["attempt_index"]) == (
        claim["lease_id"],
        1,
        claim["attempt_id"],
        0,
    )
    assert (s["reason_code"], s["reason_detail"], s["requested_by"], s["continuation_pointer"]) == (
        "waiting_for_approval",
        "the boss",
        "worker",
        "step 7",
    )
    assert (s["outcome"], s["timeout_behavior"], s["closed_at_ms"], s["suspended_at_ms"]) == (
        "suspended",
        "fail",
        None,
        now,
    )
    w = stored(db, "ff_waitpoint")
    assert (w["state"], w["ordinal"], w["activated_at_ms"], w["expires_at_ms"]) == (
        "active",
        0,
        now,
        now + 9000,
    )
    assert (w["required_signal_names"], w["suspension_id"]) == (["approve"], row["suspension_id"])
    assert row["waitpoint_id"].bytes[-1] == row["suspension_id"].bytes[-1] == e["partition_key"]
    assert events(db, eid) == [
        "lease/acquired",
        "lease/released:suspend",
        "suspension/suspended:waiting_for_approval",
    ]
    (released,) = table(db, "select * from ff_event where event_type = 'released'")
    assert (released["lease_id"], released["worker_id"]) == (claim["lease_id"], "w")
    (said,) = table(db, "select * from ff_event where event_type = 'suspended'")
    assert (said["suspension_id"], said["waitpoint_id"]) == (row["suspension_id"], row["waitpoint_id"])
    assert claim_next(db) is None
    assert violations(db) == []


@pytest.mark.parametrize(("code", "blocking"), REASONS.items())
def test_each_reason_has_its_blocking_reason(db, code, blocking):
    claim, _ = suspended(db, reason_code=code)
    assert execution(db, claim["execution_id"])["blocking_reason"] == blocking
    assert violations(db) == []


@pytest.mark.parametrize("code", ["", "because", None, "paused_by_operator"])
def test_other_reasons_are_refused(db, code):
    with refused("invalid_reason_code"):
        suspended(db, reason_code=code)


@pytest.mark.parametrize("by", ["worker", "operator", "policy", "system_timeout_policy"])
def test_known_callers_may_request_it(db, by):
    suspended(db, requested_by=by)
    with refused("invalid_input"):
        suspended(db, requested_by=by + "x")


@pytest.mark.parametrize(
    "args",
    [
        {"timeout_ms": 0},
        {"timeout_ms": -1},
        {"timeout_ms": 315_360_000_001},
        {"timeout_ms": 1, "timeout_at_ms": 2**50},
        {"timeout_at_ms": 1},
        {"timeout_ms": 1, "timeout_behavior": "explode"},
        {"timeout_behavior": "fail"},
        {"timeout_behavior": "explode"},
    ],
)
def test_a_timeout_has_a_form(db, args):
    claim = run(db)
    before = everything(db)
    with refused("invalid_timeout"):
        suspend(db, claim["handle"], **args)
    assert everything(db) == before


def test_a_timeout_that_is_now_has_passed_and_the_next_millisecond_has_not(db, clock):
    now = clock.freeze()
    claim = run(db)
    with refused("invalid_timeout"):
        suspend(db, claim["handle"], timeout_at_ms=now)
    assert suspend(db, claim["handle"], timeout_at_ms=now + 1)[0]["timeout_at_ms"] == now + 1


def test_the_longest_timeout_is_ten_years(db, clock):
    now = clock.freeze()
    assert suspended(db, timeout_ms=315_360_000_000)[1]["timeout_at_ms"] == now + 315_360_000_000


def test_the_fence_comes_before_the_key_and_shapes_before_the_fence(db):
    claim = run(db)
    with refused("invalid_handle"):
        suspend(db, "x", {}, reason_code="x")
    with refused("invalid_reason_code"):
        by_triple(db, {**claim, "lease_epoch": 99}, reason_code="x")
    with refused("invalid_resume_condition"):
        by_triple(db, {**claim, "lease_epoch": 99}, {})
    db.execute("delete from ff_waitpoint_hmac")
    with refused("stale_lease"):
        by_triple(db, {**claim, "lease_epoch": 99})
    with refused("hmac_not_initialized"):
        by_triple(db, claim)


def test_by_triple_the_whole_fence_is_checked(db):
    claim = run(db)
    with refused("fence_required"):
        rows(db, "ff_suspend_execution", execution_id=claim["execution_id"], condition=Jsonb(APPROVAL))
    with refused("partial_fence"):
        by_triple(db, {**claim, "lease_id": None})
    for wrong in ({"lease_id": UNKNOWN}, {"lease_epoch": 2}, {"attempt_id": UNKNOWN}, {"attempt_index": 1}):
        with refused("stale_lease"):
            by_triple(db, {**claim, **wrong})
    with refused("execution_not_found"):
        by_triple(db, {**claim, "execution_id": f"{{fp:7}}:{UNKNOWN}"})
    with refused("invalid_input"):
        rows(db, "ff_suspend_execution", **fence(claim))
    (row,) = by_triple(db, {**claim, "attempt_index": None})
    assert (row["outcome"], row["handle"]) == ("suspended", claim["handle"])
    (again,) = by_triple(db, {**claim, "attempt_index": None})
    assert again == {**row, "replayed": True}


@pytest.mark.parametrize("state", [*RUNNABLE, *TERMINAL])
def test_only_an_active_execution_suspends(db, clock, state):
    clock.freeze()
    seed(db)
    _, claim = reach(db, clock, state)
    if claim is None:
        return
    with refused("execution_not_active"):
        suspend(db, claim["handle"])


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("lapsed lease", "lease_expired"),
        ("expired lease", "lease_expired"),
        ("revoked lease", "lease_revoked"),
    ],
)
def test_a_lease_that_is_over_cannot_suspend(db, clock, state, kind):
    clock.freeze()
    seed(db)
    assert state in ACTIVE
    _, claim = reach(db, clock, state)
    before = everything(db)
    with refused(kind):
        suspend(db, claim["handle"])
    assert everything(db) == before


def test_an_id_that_is_taken_is_a_conflict(db):
    claim, first = suspended(db)
    other = run(db)
    with refused("suspension_conflict"):
        suspend(db, other["handle"], suspension_id=first["suspension_id"])
    with refused("waitpoint_conflict"):
        suspend(
            db, other["handle"], waitpoints=[{"key": "approval", "waitpoint_id": str(first["waitpoint_id"])}]
        )
    same = str(uuid.uuid4())
    with refused("waitpoint_conflict"):
        suspend(
            db,
            other["handle"],
            all_of(single("a"), single("b")),
            waitpoints=[{"key": "a", "waitpoint_id": same}, {"key": "b", "waitpoint_id": same}],
        )
    (row,) = suspend(db, other["handle"], suspension_id=UNKNOWN)
    assert row["suspension_id"] == UNKNOWN
    assert stored(db, "ff_waitpoint", waitpoint_id=first["waitpoint_id"])["execution_id"] == uuid.UUID(
        claim["execution_id"][-36:]
    )


def test_a_pending_waitpoint_must_be_there_mine_pending_and_in_time(db, clock):
    clock.freeze()
    claim, other = run(db), run(db)

    def bind(point):
        return suspend(db, claim["handle"], waitpoints=[{"use_pending": str(point)}])

    with refused("waitpoint_not_found"):
        bind(UNKNOWN)
    with refused("invalid_waitpoint_for_execution"):
        bind(waitpoint(db, other["handle"])["waitpoint_id"])
    closed = waitpoint(db, claim["handle"])["waitpoint_id"]
    one(db, "ff_close_waitpoint", handle=claim["handle"], waitpoint_id=closed)
    with refused("waitpoint_not_pending"):
        bind(closed)
    late = waitpoint(db, claim["handle"], expires_in_ms=10)["waitpoint_id"]
    clock.advance(10)
    with refused("pending_waitpoint_expired"):
        bind(late)
    good = waitpoint(db, claim["handle"])["waitpoint_id"]
    assert bind(good)[0]["waitpoint_id"] == good


def test_a_waitpoint_of_an_earlier_attempt_is_not_mine(db):
    claim = run(db, policy={"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}})
    point = waitpoint(db, claim["handle"])
    one(db, "ff_fail", handle=claim["handle"])
    again = take(db)
    with refused("invalid_waitpoint_for_execution"):
        suspend(db, again["handle"], waitpoints=[{"use_pending": str(point["waitpoint_id"])}])


def test_as_many_waitpoints_as_are_allowed_and_no_more(db):
    one(db, "ff_set_setting", name="max_open_waitpoints", value="3")
    claim = run(db)
    for _ in range(2):
        waitpoint(db, claim["handle"])
    with refused("waitpoint_limit_exceeded") as refusal:
        suspend(db, claim["handle"], all_of(single("a"), single("b")))
    assert refusal.detail["limit"] == 3
    waitpoint(db, claim["handle"])
    with refused("waitpoint_limit_exceeded"):
        waitpoint(db, claim["handle"])


# Repetitions.


def test_the_handle_that_suspended_gets_the_same_answer_to_the_same_call(db):
    claim, row = suspended(db)
    before = everything(db)
    assert suspend(db, claim["handle"]) == [{**row, "replayed": True}]
    assert everything(db) == before
    deliver(db, claim, row)
    assert suspend(db, claim["handle"]) == [{**row, "replayed": True}]
    resumed = take(db)
    assert suspend(db, claim["handle"]) == [{**row, "replayed": True}]
    one(db, "ff_complete", handle=resumed["handle"])
    with refused("execution_not_active"):
        suspend(db, claim["handle"])  # the record of the release is now that of the end


@pytest.mark.parametrize("recorded", [{}, {"idempotency_key": "k"}])
def test_the_handle_that_suspended_gets_no_recorded_answer_to_another_call(db, recorded):
    claim, row = suspended(db, **recorded)
    others = ({"condition": OPERATOR_ONLY}, {"reason_code": "manual_pause"}, {"timeout_ms": 5})
    before = everything(db)
    for other in others:
        with refused("execution_not_active"):
            suspend(db, claim["handle"], **other)
        with refused("idempotency_conflict" if recorded else "execution_not_active"):
            suspend(db, claim["handle"], **other, idempotency_key="k")
        with refused("execution_not_active"):
            suspend(db, claim["handle"], **other, idempotency_key="another")
    assert everything(db) == before
    deliver(db, claim, row)
    take(db)
    for other in others:
        with refused("stale_lease"):
            suspend(db, claim["handle"], **other)


def test_another_key_makes_it_another_call(db):
    claim, _ = suspended(db, idempotency_key="k")
    with refused("execution_not_active"):
        suspend(db, claim["handle"], idempotency_key="another")


def test_a_key_shows_no_token_to_a_fence_that_neither_suspended_nor_is_the_current_one(db):
    earlier = run(db)
    one(db, "ff_delay", handle=earlier["handle"], delay_ms=0)
    holder = take(db)
    (row,) = suspend(db, holder["handle"], idempotency_key="k")
    made_up = {**{n: holder[n] for n in ("execution_id", "lease_epoch", "attempt_id")}, "lease_id": UNKNOWN}

    def every_other_fence_is_refused(kind):
        before = everything(db)
        for condition in (APPROVAL, OPERATOR_ONLY):
            with refused(kind):
                suspend(db, earlier["handle"], condition, idempotency_key="k")
            with refused(kind):
                rows(db, "ff_suspend_execution", **made_up, condition=Jsonb(condition), idempotency_key="k")
        assert everything(db) == before

    every_other_fence_is_refused("execution_not_active")
    deliver(db, holder, row)
    every_other_fence_is_refused("execution_not_active")
    current = take(db)
    every_other_fence_is_refused("stale_lease")
    assert suspend(db, holder["handle"], idempotency_key="k") == [{**row, "replayed": True}]
    (resumed,) = suspend(db, current["handle"], idempotency_key="k")
    assert (resumed["outcome"], resumed["waitpoint_token"]) == ("already_resumed", row["waitpoint_token"])


def test_a_key_of_an_earlier_lease_does_not_answer_a_lease_that_has_run_out(db, clock):
    clock.freeze()
    claim, row = suspended(db, idempotency_key="k")
    deliver(db, claim, row)
    current = take(db)
    clock.advance(30_000)
    with refused("lease_expired"):
        suspend(db, current["handle"], idempotency_key="k")


def test_of_the_pauses_of_an_attempt_the_latest_is_remembered(db):
    claim, row = suspended(db)
    deliver(db, claim, row)
    again = take(db)
    suspend(db, again["handle"])
    with refused("execution_not_active"):
        suspend(db, claim["handle"])
    assert suspend(db, again["handle"])[0]["replayed"] is True


def test_a_key_answers_for_its_suspension_and_refuses_another_request(db):
    claim, row = suspended(db, idempotency_key="k", timeout_ms=60_000)
    before = everything(db)
    assert suspend(db, claim["handle"], idempotency_key="k", timeout_ms=60_000) == [{**row, "replayed": True}]
    assert suspend(
        db,
        claim["handle"],
        idempotency_key="k",
        timeout_ms=60_000,
        waitpoints=[],
        reason_detail="x",
        timeout_behavior="fail",
    ) == [{**row, "replayed": True}]
    for other in (
        {"condition": OPERATOR_ONLY, "timeout_ms": 60_000},
        {"timeout_ms": 60_001},
        {"timeout_ms": 60_000, "timeout_behavior": "expire"},
        {"timeout_ms": 60_000, "reason_code": "manual_pause"},
        {"timeout_ms": 60_000, "policy": {"resume_delay_ms": 1}},
        {"timeout_ms": 60_000, "waitpoints": [{"key": "approval"}]},
    ):
        with refused("idempotency_conflict"):
            suspend(db, claim["handle"], idempotency_key="k", **other)
    assert everything(db) == before


def test_a_worker_that_starts_over_finds_its_suspension_resumed_and_goes_on(db):
    claim, row = suspended(db, idempotency_key="k")
    deliver(db, claim, row)
    again = take(db)
    before = everything(db)
    assert suspend(db, again["handle"], idempotency_key="k") == [
        {**row, "replayed": True, "outcome": "already_resumed", "handle": again["handle"]}
    ]
    assert everything(db) == before
    # A caller that does not hold the lease gets the recorded outcome.
    assert suspend(db, claim["handle"], idempotency_key="k")[0]["outcome"] == "suspended"
    one(db, "ff_renew", handle=again["handle"])
    assert suspend(db, again["handle"], idempotency_key="k2")[0]["outcome"] == "suspended"
    assert violations(db) == []


def test_a_key_whose_timeout_has_passed_still_answers(db, clock):
    now = clock.freeze()
    args = {
        "idempotency_key": "k",
        "timeout_at_ms": now + 10,
        "timeout_behavior": "auto_resume_with_timeout_signal",
    }
    claim, _ = suspended(db, **args)
    clock.advance(10)
    assert expire(db, claim)["outcome"] == "auto_resumed"
    again = take(db)
    assert suspend(db, again["handle"], **args)[0]["outcome"] == "already_resumed"


def test_a_key_belongs_to_one_execution(db):
    first, one_row = suspended(db, idempotency_key="k")
    second, other_row = suspended(db, idempotency_key="k")
    assert one_row["suspension_id"] != other_row["suspension_id"]
    assert first["execution_id"] != second["execution_id"]
    with refused("invalid_input"):
        suspended(db, idempotency_key="k" * 513)
    assert [suspended(db, idempotency_key="")[1]["replayed"] for _ in range(2)] == [False, False]


def test_a_key_is_free_again_when_its_suspension_ended_with_its_attempt(db, clock):
    clock.freeze()
    claim, row = suspended(db, idempotency_key="k", timeout_ms=10)
    clock.advance(10)
    assert expire(db, claim)["outcome"] == "failed"
    assert suspend(db, claim["handle"], idempotency_key="k", timeout_ms=10) == [{**row, "replayed": True}]
    one(db, "ff_replay_execution", execution_id=claim["execution_id"])
    (fresh,) = suspend(db, take(db)["handle"], idempotency_key="k", timeout_ms=10)
    assert (fresh["outcome"], fresh["replayed"]) == ("suspended", False)
    assert fresh["suspension_id"] != row["suspension_id"]
    assert violations(db) == []


# The condition holds already.


def test_signals_that_came_before_are_enough(db, clock):
    clock.freeze()
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    assert deliver(db, claim, point)["effect"] == "buffered_for_pending_waitpoint"
    deliver(db, claim, point, "noise")
    waitpoints = [{"use_pending": str(point["waitpoint_id"])}]
    before = execution(db, claim["execution_id"])
    (row,) = suspend(db, claim["handle"], waitpoints=waitpoints, timeout_ms=1000)
    assert (row["outcome"], row["replayed"]) == ("already_satisfied", False)
    after = execution(db, claim["execution_id"])
    assert {k for k in after if after[k] != before[k]} <= {
        "open_waitpoints",
        "last_event_ord",
        "last_mutation_at_ms",
    }
    assert after["open_waitpoints"] == 0
    assert stored(db, "ff_attempt")["state"] == "started"
    s = stored(db, "ff_suspension")
    assert (s["close_reason"], s["outcome"], s["closed_at_ms"]) == (
        "already_satisfied",
        "already_satisfied",
        clock.now(),
    )
    w = stored(db, "ff_waitpoint")
    assert (w["state"], w["close_reason"]) == ("closed", "already_satisfied")
    assert [(g["signal_name"], g["matched"], g["consumed"], g["discarded"]) for g in signals(db, claim)] == [
        ("approve", True, True, False),
        ("noise", False, False, True),
    ]
    assert events(db, claim["execution_id"])[1:] == [
        "signal/delivered",
        "signal/delivered",
        "suspension/already_satisfied",
    ]
    seen = rows(db, "ff_observe_signals", handle=claim["handle"], matched_only=True)
    assert [g["signal_name"] for g in seen] == ["approve"]
    stored_before = everything(db)
    assert suspend(db, claim["handle"], waitpoints=waitpoints, timeout_ms=1000) == [{**row, "replayed": True}]
    assert everything(db) == stored_before
    with refused("waitpoint_not_pending"):
        suspend(db, claim["handle"], waitpoints=waitpoints, timeout_ms=2000)
    one(db, "ff_complete", handle=claim["handle"])
    assert violations(db) == []


def test_already_satisfied_is_answered_again_even_when_the_lease_has_run_out(db, clock):
    clock.freeze()
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    deliver(db, claim, point)
    waitpoints = [{"use_pending": str(point["waitpoint_id"])}]
    (row,) = suspend(db, claim["handle"], waitpoints=waitpoints)
    clock.advance(30_000)
    assert suspend(db, claim["handle"], waitpoints=waitpoints) == [{**row, "replayed": True}]


@pytest.mark.parametrize("consume", [True, False])
def test_already_satisfied_is_answered_again_when_the_waitpoint_stayed_open(db, clock, consume):
    clock.freeze()
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    deliver(db, claim, point)
    waitpoints = [{"use_pending": str(point["waitpoint_id"])}]
    policy = {"close_waitpoint_on_resume": False, "consume_matched_signals": consume}
    args = {"waitpoints": waitpoints, "policy": policy}
    (row,) = suspend(db, claim["handle"], **args)
    assert row["outcome"] == "already_satisfied"
    before = everything(db)
    assert suspend(db, claim["handle"], **args) == [{**row, "replayed": True}]
    clock.advance(30_000)
    assert suspend(db, claim["handle"], **args) == [{**row, "replayed": True}]
    assert everything(db) == before
    assert violations(db) == []


def test_a_wait_with_a_key_of_its_own_repeats_none_that_was_satisfied_before(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    args = {
        "waitpoints": [{"use_pending": str(point["waitpoint_id"])}],
        "policy": {"close_waitpoint_on_resume": False},
    }
    for n in range(2):
        deliver(db, claim, point)
        for replayed in (False, True):
            (row,) = suspend(db, claim["handle"], **args, idempotency_key=str(n))
            assert (row["outcome"], row["replayed"]) == ("already_satisfied", replayed)
    (row,) = suspend(db, claim["handle"], **args, idempotency_key="2")
    assert (row["outcome"], row["replayed"]) == ("suspended", False)
    assert violations(db) == []


@pytest.mark.parametrize("keys", [(None, "k"), ("k", None), ("k", "")])
def test_a_wait_with_a_key_and_one_without_do_not_repeat_each_other(db, keys):
    claim = run(db)
    point = waitpoint(db, claim["handle"])
    args = {
        "waitpoints": [{"use_pending": str(point["waitpoint_id"])}],
        "policy": {"close_waitpoint_on_resume": False},
    }
    deliver(db, claim, point)
    (row,) = suspend(db, claim["handle"], **args, idempotency_key=keys[0])
    assert (row["outcome"], row["replayed"]) == ("already_satisfied", False)
    (row,) = suspend(db, claim["handle"], **args, idempotency_key=keys[1])
    assert (row["outcome"], row["replayed"]) == ("suspended", False)
    assert violations(db) == []


def test_fresh_waitpoints_of_a_satisfied_suspension_are_closed_with_it(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"], "a")
    deliver(db, claim, point, "x")
    found = suspend(
        db,
        claim["handle"],
        count(1, "signals", ["a", "b"]),
        waitpoints=[{"key": "b"}, {"use_pending": str(point["waitpoint_id"])}],
    )
    assert [r["outcome"] for r in found] == ["already_satisfied"] * 2
    assert {r["state"] for r in table(db, "select state from ff_waitpoint")} == {"closed"}
    assert violations(db) == []


def test_signals_of_before_count_together_with_those_of_after(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"], "a")
    deliver(db, claim, point, "x")
    found = suspend(
        db,
        claim["handle"],
        all_of(single("a", "x"), single("b", "y")),
        waitpoints=[{"use_pending": str(point["waitpoint_id"])}, {"key": "b"}],
        timeout_ms=1000,
    )
    assert found[0]["outcome"] == "suspended"
    w = stored(db, "ff_waitpoint", waitpoint_id=point["waitpoint_id"])
    assert (w["state"], w["expires_at_ms"], w["matched_count"]) == ("active", found[0]["timeout_at_ms"], 1)
    assert [g["suspension_id"] for g in signals(db, claim)] == [found[0]["suspension_id"]]
    assert deliver(db, claim, found[1], "y")["resumed"] is True
    assert violations(db) == []


def test_signals_on_waitpoints_that_are_not_bound_do_not_count(db):
    claim = run(db)
    point = waitpoint(db, claim["handle"], "approval")
    deliver(db, claim, point)
    (row,) = suspend(db, claim["handle"])
    assert row["outcome"] == "suspended"
    assert execution(db, claim["execution_id"])["open_waitpoints"] == 2
    assert deliver(db, claim, point)["effect"] == "buffered_for_pending_waitpoint"
    assert deliver(db, claim, row)["resumed"] is True
    assert execution(db, claim["execution_id"])["open_waitpoints"] == 1
    assert violations(db) == []


def test_an_open_suspension_of_an_active_execution_is_corrupt(db):
    claim = run(db)
    other, row = suspended(db)
    db.execute(
        "update ff_suspension set execution_id = %s where suspension_id = %s",
        [claim["execution_id"][-36:], row["suspension_id"]],
    )
    with refused("corrupt_state"):
        suspend(db, claim["handle"])
    with refused("corrupt_state"):
        one(db, "ff_resume_execution", execution_id=other["execution_id"])
    with refused("corrupt_state"):
        expire(db, other)


def test_suspending_frees_nothing_that_others_hold(db):
    """A grant for another execution, a lease of another worker: untouched."""
    create(db)
    other = take(db)
    suspended(db)
    one(db, "ff_renew", handle=other["handle"])


def test_a_key_that_a_later_run_took_over_still_shows_the_first_caller_its_own_suspension(db, clock):
    clock.freeze()
    claim, point = suspended(db, idempotency_key="k", timeout_ms=1000)
    clock.advance(1000)
    expire(db, claim)
    one(db, "ff_replay_execution", execution_id=claim["execution_id"])
    (later,) = suspend(db, take(db)["handle"], idempotency_key="k", timeout_ms=1000)
    before = everything(db)
    (again,) = suspend(db, claim["handle"], idempotency_key="k", timeout_ms=1000)
    assert again == {**point, "replayed": True}
    assert again["waitpoint_token"] != later["waitpoint_token"]
    assert everything(db) == before
