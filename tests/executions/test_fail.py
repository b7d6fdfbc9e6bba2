"""ff_fail and ff_fail_execution: the retry that follows, or the end."""

import pytest

from tests.executions.states import attempts, everything, fence
from tests.sql import claim, create, events, execution, one, refused, take, violations


def retrying(max_retries=1000, categories=(), **backoff):
    return {
        "retry_policy": {
            "max_retries": max_retries,
            "retryable_categories": list(categories),
            "backoff": backoff or {"type": "fixed", "delay_ms": 0},
        }
    }


def test_a_failure_without_a_retry_policy_ends_the_execution(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db)
    clock.advance(5)
    assert one(db, "ff_fail", handle=row["handle"], reason="broken", category="disk") == {
        "outcome": "terminal_failed",
        "public_state": "failed",
        "delay_until_ms": None,
        "next_attempt_index": None,
        "retry_count": 0,
        "replayed": False,
    }
    stored = execution(db, eid)
    assert (stored["failure_reason"], stored["failure_category"]) == ("broken", "disk")
    assert (stored["terminal_at_ms"], stored["terminal_outcome"]) == (now + 5, "failed")
    for gone in (
        "lease_id",
        "lease_expires_at_ms",
        "lease_check_at_ms",
        "lease_ttl_ms",
        "attempt_timeout_at_ms",
    ):
        assert stored[gone] is None
    assert (stored["worker_id"], stored["worker_instance_id"], stored["current_attempt_id"]) == (None,) * 3
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["outcome"], attempt["ended_at_ms"]) == (
        "ended_failure",
        "failure",
        now + 5,
    )
    assert (attempt["failure_reason"], attempt["failure_category"]) == ("broken", "disk")
    assert attempt["classification"] == "transient"
    assert (attempt["release_op"], attempt["release_lease_epoch"]) == ("fail", 1)
    assert attempt["release_lease_id"] == row["lease_id"]
    assert events(db, eid) == ["lease/acquired", "lease/released:fail", "completion/failed:broken"]
    assert claim(db) is None
    assert violations(db) == []


def test_a_retry_waits_for_its_backoff_to_the_millisecond(db, clock):
    now = clock.freeze()
    eid = create(db, policy=retrying(2, type="fixed", delay_ms=700))
    row = take(db)
    assert one(db, "ff_fail", handle=row["handle"], reason="once") == {
        "outcome": "retry_scheduled",
        "public_state": "delayed",
        "delay_until_ms": now + 700,
        "next_attempt_index": 1,
        "retry_count": 1,
        "replayed": False,
    }
    stored = execution(db, eid)
    assert (stored["delay_until_ms"], stored["retry_count"]) == (now + 700, 1)
    assert (stored["failure_reason"], stored["failure_category"]) == ("once", "transient")
    assert stored["terminal_at_ms"] is None
    assert violations(db) == []
    clock.advance(699)
    assert claim(db) is None
    clock.advance(1)
    again = take(db)
    assert (again["attempt_index"], again["attempt_type"], again["lease_epoch"]) == (1, "retry", 2)
    assert again["handle_kind"] == "fresh"
    assert again["attempt_id"] != row["attempt_id"]
    stored = execution(db, eid)
    assert (stored["failure_reason"], stored["failure_category"], stored["delay_until_ms"]) == (None,) * 3
    assert stored["retry_count"] == 1
    assert attempts(db, eid)[1]["previous_attempt_index"] == 0
    assert violations(db) == []


def test_a_retry_without_delay_can_be_claimed_at_once(db, clock):
    clock.freeze()
    create(db, policy=retrying(1))
    answer = one(db, "ff_fail", handle=take(db)["handle"])
    assert (answer["outcome"], answer["public_state"], answer["delay_until_ms"]) == (
        "retry_scheduled",
        "waiting",
        None,
    )
    assert take(db)["attempt_type"] == "retry"


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_retries_are_counted_up_to_the_limit(db, clock, retries):
    clock.freeze()
    eid = create(db, policy=retrying(retries))
    for n in range(retries):
        answer = one(db, "ff_fail", handle=take(db)["handle"])
        assert (answer["outcome"], answer["retry_count"], answer["next_attempt_index"]) == (
            "retry_scheduled",
            n + 1,
            n + 1,
        )
    answer = one(db, "ff_fail", handle=take(db)["handle"])
    assert (answer["outcome"], answer["retry_count"]) == ("terminal_failed", retries)
    assert len(attempts(db, eid)) == retries + 1
    assert events(db, eid).count("completion/failed") == 1
    assert violations(db) == []


def test_a_retry_policy_without_numbers_retries_three_times_after_1_2_and_4_seconds(db, clock):
    now = clock.freeze()
    create(db, policy={"retry_policy": {}})
    for delay in (1000, 2000, 4000):
        assert one(db, "ff_fail", handle=take(db)["handle"])["delay_until_ms"] == now + delay
        clock.advance(delay)
        now += delay
    assert one(db, "ff_fail", handle=take(db)["handle"])["outcome"] == "terminal_failed"


@pytest.mark.parametrize(
    ("backoff", "retries", "delay"),
    [
        ({"type": "fixed", "delay_ms": 123}, 0, 123),
        ({"type": "fixed", "delay_ms": 123}, 999, 123),
        ({"type": "fixed", "delay_ms": 10**14}, 5, 10**14),
        ({"type": "exponential"}, 5, 32_000),
        ({"type": "exponential"}, 6, 60_000),
        ({"type": "exponential"}, 999, 60_000),
        ({"type": "exponential", "initial_delay_ms": 100, "multiplier": 3, "max_delay_ms": 10_000}, 0, 100),
        ({"type": "exponential", "initial_delay_ms": 100, "multiplier": 3, "max_delay_ms": 10_000}, 4, 8100),
        (
            {"type": "exponential", "initial_delay_ms": 100, "multiplier": 3, "max_delay_ms": 10_000},
            5,
            10_000,
        ),
        ({"type": "exponential", "initial_delay_ms": 8, "multiplier": 1.5}, 3, 27),
        ({"type": "exponential", "initial_delay_ms": 8, "multiplier": 1}, 999, 8),
        ({"type": "exponential", "initial_delay_ms": 1, "multiplier": 1e6}, 999, 60_000),
        (
            {"type": "exponential", "initial_delay_ms": 1, "multiplier": 1e6, "max_delay_ms": 10**14},
            2,
            10**12,
        ),
        (
            {"type": "exponential", "initial_delay_ms": 1, "multiplier": 1e6, "max_delay_ms": 10**14},
            999,
            10**14,
        ),
        (
            {"type": "exponential", "initial_delay_ms": 10**14, "multiplier": 1e6, "max_delay_ms": 7},
            999,
            7,
        ),
        ({"type": "exponential", "initial_delay_ms": 5000, "max_delay_ms": 300}, 0, 300),
        ({"type": "exponential", "initial_delay_ms": 0, "multiplier": 1e6}, 999, None),
        ({"type": "exponential", "max_delay_ms": 0}, 3, None),
    ],
)
def test_the_backoff_follows_the_stored_policy_and_never_overflows(db, clock, backoff, retries, delay):
    now = clock.freeze()
    eid = create(db, policy=retrying(1000, **backoff))
    row = take(db)
    db.execute("update ff_execution set retry_count = %s", [retries])
    answer = one(db, "ff_fail", handle=row["handle"])
    assert answer["outcome"] == "retry_scheduled"
    assert answer["delay_until_ms"] == (now + delay if delay else None)
    assert answer["public_state"] == ("delayed" if delay else "waiting")
    assert answer["retry_count"] == execution(db, eid)["retry_count"] == retries + 1
    assert violations(db) == []


@pytest.mark.parametrize(("delay", "lowest", "seen"), [(1000, 500, 40), (5, 3, 3), (1, 1, 1)])
def test_jitter_lies_between_half_of_the_delay_and_all_of_it(db, clock, delay, lowest, seen):
    now = clock.freeze()
    create(db, policy=retrying(type="exponential", initial_delay_ms=delay, multiplier=1, jitter=True))
    delays = []
    for _ in range(80):
        delays.append(one(db, "ff_fail", handle=take(db)["handle"])["delay_until_ms"] - now)
        clock.advance(delay)
        now += delay
    assert lowest <= min(delays) <= max(delays) <= delay
    assert len(set(delays)) >= seen


@pytest.mark.parametrize(
    ("classification", "category", "retryable", "retried"),
    [
        ("transient", None, [], True),
        ("infra_crash", None, [], True),
        ("timeout", None, [], True),
        ("permanent", None, [], False),
        ("cancelled", None, [], False),
        ("transient", "disk", [], True),
        ("transient", "disk", ["disk"], True),
        ("transient", "disk", ["net", "disk"], True),
        ("transient", "disk", ["net"], False),
        ("transient", "Disk", ["disk"], False),
        ("transient", None, ["transient"], True),
        ("timeout", None, ["transient"], False),
        ("timeout", "transient", ["transient"], True),
        ("permanent", None, ["permanent"], False),
        ("permanent", "disk", ["disk"], False),
        ("cancelled", "disk", ["disk"], False),
    ],
)
def test_classification_and_category_decide_about_a_retry(
    db, clock, classification, category, retryable, retried
):
    clock.freeze()
    eid = create(db, policy=retrying(1, retryable))
    answer = one(db, "ff_fail", handle=take(db)["handle"], classification=classification, category=category)
    assert answer["outcome"] == ("retry_scheduled" if retried else "terminal_failed")
    assert answer["retry_count"] == int(retried)
    (attempt,) = attempts(db, eid)
    assert attempt["classification"] == classification
    assert attempt["failure_category"] == (category or classification)
    assert execution(db, eid)["failure_category"] == (category or classification)


@pytest.mark.parametrize(
    ("reason", "stored"),
    [
        (None, ""),
        ("", ""),
        ("two\nlines\x01", "two\nlines\x01"),
        ("x" * 4096, "x" * 4096),
        ("x" * 4097, "x" * 4096),
        ("ü" * 100_000, "ü" * 4096),
    ],
)
def test_a_reason_is_cut_and_never_refused(db, reason, stored):
    eid = create(db)
    one(db, "ff_fail", handle=take(db)["handle"], reason=reason)
    assert execution(db, eid)["failure_reason"] == stored
    assert attempts(db, eid)[0]["failure_reason"] == stored


@pytest.mark.parametrize(
    ("args", "arg"),
    [
        ({"classification": None}, "p_classification"),
        ({"classification": ""}, "p_classification"),
        ({"classification": "Transient"}, "p_classification"),
        ({"classification": "fatal"}, "p_classification"),
        ({"category": ""}, "p_category"),
        ({"category": "x" * 257}, "p_category"),
        ({"category": "a\nb"}, "p_category"),
        ({"handle": None}, "p_handle"),
    ],
)
def test_bad_input_is_refused_and_the_lease_stays(db, args, arg):
    create(db)
    row = take(db)
    before = everything(db)
    with refused("invalid_input") as refusal:
        one(db, "ff_fail", **{"handle": row["handle"], **args})
    assert refusal.detail["arg"] == arg
    assert everything(db) == before


def test_the_typed_form_does_the_same(db, clock):
    now = clock.freeze()
    eid = create(db, policy=retrying(1, type="fixed", delay_ms=9))
    answer = one(
        db, "ff_fail_execution", **fence(take(db)), reason="r", classification="timeout", category="c"
    )
    assert answer == {
        "outcome": "retry_scheduled",
        "public_state": "delayed",
        "delay_until_ms": now + 9,
        "next_attempt_index": 1,
        "retry_count": 1,
        "replayed": False,
    }
    (attempt,) = attempts(db, eid)
    assert (attempt["failure_reason"], attempt["classification"]) == ("r", "timeout")
    assert events(db, eid) == ["lease/acquired", "lease/released:fail"]


def test_a_retry_does_not_touch_the_deadline_and_starts_the_attempt_clock_anew(db, clock):
    now = clock.freeze()
    policy = retrying(1) | {"timeout_policy": {"attempt_timeout_ms": 1000, "execution_deadline_ms": 5000}}
    create(db, policy=policy)
    clock.advance(10)
    row = take(db)
    clock.advance(600)
    one(db, "ff_fail", handle=row["handle"])
    again = take(db)
    assert again["attempt_timeout_at_ms"] == now + 610 + 1000
    assert again["deadline_at_ms"] == now + 5000
    assert violations(db) == []


def test_a_reclaim_is_no_retry(db, clock):
    clock.freeze()
    eid = create(db, policy=retrying(1))
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    row = take(db)
    assert execution(db, eid)["retry_count"] == 0
    assert one(db, "ff_fail", handle=row["handle"])["next_attempt_index"] == 2
    assert one(db, "ff_fail", handle=take(db)["handle"])["outcome"] == "terminal_failed"
    stored = execution(db, eid)
    assert (stored["retry_count"], stored["lease_reclaim_count"], stored["total_attempt_count"]) == (1, 1, 3)
    assert violations(db) == []


def test_a_paused_or_draining_lane_does_not_stop_a_retry_from_being_scheduled(db):
    create(db, policy=retrying(1))
    row = take(db)
    db.execute("update ff_lane_registry set state = 'disabled'")
    assert one(db, "ff_fail", handle=row["handle"])["outcome"] == "retry_scheduled"
    assert claim(db) is None
    db.execute("update ff_lane_registry set state = 'draining'")
    assert take(db)["attempt_type"] == "retry"


# --- a delay that the caller asks for ---

MONTH = 30 * 86_400_000


def by_handle(db, lease, **args):
    return one(db, "ff_fail", handle=lease["handle"], **args)


def by_fence(db, lease, **args):
    return one(db, "ff_fail_execution", **fence(lease), **args)


@pytest.mark.parametrize("call", [by_handle, by_fence])
@pytest.mark.parametrize("after", [0, 1, 120_000, MONTH])
def test_a_retry_after_takes_the_place_of_the_backoff(db, clock, call, after):
    now = clock.freeze()
    backoff = {"type": "exponential", "initial_delay_ms": 500, "max_delay_ms": 1000, "jitter": True}
    eid = create(db, policy=retrying(**backoff))
    answer = call(db, take(db), retry_after_ms=after)
    assert answer["outcome"] == "retry_scheduled"
    assert (answer["delay_until_ms"], answer["public_state"]) == (
        (now + after, "delayed") if after else (None, "waiting")
    )
    assert execution(db, eid)["retry_count"] == 1
    if after:
        clock.advance(after - 1)
        assert claim(db) is None
        clock.advance(1)
    assert take(db)["attempt_type"] == "retry"
    assert violations(db) == []


def test_a_retry_after_grants_no_retry_beyond_the_policys(db):
    create(db, policy=retrying(max_retries=1))
    assert by_handle(db, take(db), retry_after_ms=0)["outcome"] == "retry_scheduled"
    assert by_handle(db, take(db), retry_after_ms=0)["outcome"] == "terminal_failed"
    create(db)
    assert by_handle(db, take(db), retry_after_ms=0)["outcome"] == "terminal_failed"


@pytest.mark.parametrize("args", [{"classification": "permanent"}, {"category": "other"}])
def test_a_retry_after_is_ignored_when_no_retry_follows(db, args):
    create(db, policy=retrying(categories=["mine"]))
    assert by_handle(db, take(db), retry_after_ms=5, **args)["outcome"] == "terminal_failed"


def test_a_repeated_failure_answers_with_the_delay_of_the_first(db, clock):
    now = clock.freeze()
    create(db, policy=retrying())
    lease = take(db)
    by_handle(db, lease, retry_after_ms=10)
    again = by_handle(db, lease, retry_after_ms=99)
    assert (again["delay_until_ms"], again["replayed"]) == (now + 10, True)


@pytest.mark.parametrize("call", [by_handle, by_fence])
@pytest.mark.parametrize("after", [-1, MONTH + 1, 2**63 - 1])
def test_a_retry_after_lies_between_0_and_30_days(db, call, after):
    create(db, policy=retrying())
    lease = take(db)
    with refused("invalid_input") as refusal:
        call(db, lease, retry_after_ms=after)
    assert refusal.detail["arg"] == "p_retry_after_ms"
    assert call(db, lease)["outcome"] == "retry_scheduled"
