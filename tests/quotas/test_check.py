"""ff_check_admission and ff_release_admission: the limiter by itself."""

import uuid

import psycopg
import pytest

from tests.quotas.support import ask, limits, many, parked, policy, state, under
from tests.sql import claim, create, execution, one, refused, rows, table, take, violations


def unknown():
    name = uuid.uuid4()
    return f"{{fp:{name.bytes[-1]}}}:{name}"


def give_back(db, eid, name="q", **args):
    return one(db, "ff_release_admission", quota_policy_id=name, execution_id=eid, **args)


def written(db):
    return table(
        db, "select count(*) as w, (select count(*) from ff_quota_reservation) as r from ff_quota_window"
    )[0]


def test_an_admission_is_held_and_asking_again_consumes_nothing(db, clock):
    clock.freeze()
    policy(db, at_once=2, per_window=5)
    eid = unknown()
    assert ask(db, eid) == {
        "outcome": "admitted",
        "retry_after_ms": None,
        "active_concurrency": 1,
        "window_count": 1,
    }
    assert ask(db, eid) == {
        "outcome": "already_admitted",
        "retry_after_ms": None,
        "active_concurrency": 1,
        "window_count": 1,
    }
    assert ask(db, unknown())["active_concurrency"] == 2
    full = ask(db, unknown())
    assert full == {
        "outcome": "concurrency_exceeded",
        "retry_after_ms": None,
        "active_concurrency": 2,
        "window_count": 2,
    }
    assert written(db) == {"w": 2, "r": 2}


def test_bad_arguments_are_refused(db):
    policy(db)
    with refused("quota_policy_not_found"):
        ask(db, unknown(), "nobody")
    for hold in (0, -1, None):
        with refused("invalid_input"):
            ask(db, unknown(), hold_ms=hold)
    with refused("invalid_execution_id"):
        ask(db, "x")
    with refused("invalid_execution_id"):
        give_back(db, "x")
    with refused("invalid_input"):
        give_back(db, unknown(), refund_rate=None)


def test_a_hold_ends_at_its_time(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    ask(db, unknown(), hold_ms=1000)
    late = unknown()
    clock.advance(999)
    assert ask(db, late)["outcome"] == "concurrency_exceeded"
    clock.advance(1)
    assert ask(db, late)["outcome"] == "admitted"


def test_the_window_slides(db, clock):
    now = clock.freeze()
    policy(db, per_window=2, window=10)
    for at in (0, 4_000):
        clock.set(now + at)
        assert ask(db, unknown())["outcome"] == "admitted"
    clock.set(now + 5_000)
    late = unknown()
    assert ask(db, late) == {
        "outcome": "rate_exceeded",
        "retry_after_ms": 5_000,
        "active_concurrency": 2,
        "window_count": 2,
    }
    clock.set(now + 9_999)
    assert ask(db, late)["retry_after_ms"] == 1
    clock.set(now + 10_000)
    assert ask(db, late)["outcome"] == "admitted"
    assert ask(db, unknown())["retry_after_ms"] == 4_000


def test_after_a_lower_limit_the_answer_is_the_start_that_must_leave_the_window(db, clock):
    now = clock.freeze()
    policy(db, per_window=3, window=10)
    for at in (0, 1_000, 2_000):
        clock.set(now + at)
        ask(db, unknown())
    one(db, "ff_update_quota_policy", quota_policy_id="q", max_requests_per_window=1)
    # Three lie in the window and one may: the third oldest has to leave it.
    assert ask(db, unknown())["retry_after_ms"] == 10_000


def test_jitter_is_a_random_part(db, clock):
    clock.freeze()
    policy(db, per_window=1, window=10, jitter=100)
    ask(db, unknown())
    waits = {ask(db, unknown())["retry_after_ms"] for _ in range(60)}
    assert min(waits) >= 10_000
    assert max(waits) <= 10_100
    assert len(waits) > 10


def test_an_attempt_is_charged_once_per_window(db, clock):
    clock.freeze()
    policy(db, per_window=1, window=10)
    eid = unknown()
    ask(db, eid, hold_ms=1)
    clock.advance(1)
    again = ask(db, eid, hold_ms=1)
    assert (again["outcome"], again["window_count"]) == ("admitted", 1)
    clock.advance(10_000)
    assert ask(db, eid)["outcome"] == "admitted"
    assert ask(db, unknown())["retry_after_ms"] == 10_000


def test_rate_is_checked_before_concurrency(db):
    policy(db, at_once=1, per_window=1)
    ask(db, unknown())
    assert ask(db, unknown())["outcome"] == "rate_exceeded"


def test_a_release_frees_the_slot_and_refunds_the_start_if_asked(db):
    policy(db, at_once=1, per_window=2)
    first, second, third = unknown(), unknown(), unknown()
    ask(db, first)
    assert give_back(db, first) == {"outcome": "released", "active_concurrency": 0}
    assert give_back(db, first) == {"outcome": "already_released", "active_concurrency": 0}
    assert limits(db)["window_count"] == 1
    ask(db, second)
    assert give_back(db, second, refund_rate=True)["outcome"] == "released"
    assert limits(db)["window_count"] == 1
    assert ask(db, third)["outcome"] == "admitted"


def test_nothing_to_release_is_no_error(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    assert give_back(db, unknown(), "nobody") == {"outcome": "already_released", "active_concurrency": 0}
    eid = unknown()
    ask(db, eid, hold_ms=10)
    clock.advance(10)
    assert give_back(db, eid)["outcome"] == "already_released"


def test_an_execution_that_runs_has_its_slot(db):
    policy(db, at_once=1)
    eid = under(db)
    row = take(db)
    assert ask(db, eid)["outcome"] == "already_admitted"
    assert limits(db)["active_concurrency"] == 1
    with refused("slot_in_use") as refusal:
        give_back(db, eid)
    assert refusal.detail["quota_policy_id"] == "q"
    one(db, "ff_complete", handle=row["handle"])
    assert give_back(db, eid)["outcome"] == "already_released"


def test_a_claim_takes_over_the_slot_that_was_asked_for(db):
    policy(db, at_once=1, per_window=1)
    other, mine = under(db, priority=1), under(db)
    assert ask(db, mine)["outcome"] == "admitted"
    # The other comes first by its priority and has no slot: it is parked, and the one with the slot is found after it.
    assert take(db)["execution_id"] == mine
    assert state(db, other) == "blocked_by_quota"
    assert limits(db)["active_concurrency"] == 1
    assert limits(db)["window_count"] == 1
    assert table(db, "select * from ff_quota_reservation") == []
    assert violations(db) == []


def test_a_slot_asked_for_an_execution_outside_the_policy_ends_with_it(db):
    policy(db, at_once=1)
    eid = create(db)
    ask(db, eid)
    row = take(db)
    assert limits(db)["active_concurrency"] == 1
    one(db, "ff_complete", handle=row["handle"])
    assert limits(db)["active_concurrency"] == 0
    assert violations(db) == []


def by_itself(db, eid):
    create(db, execution_id=eid)


def in_a_flow(db, eid):
    nodes = [{"key": "node", "lane_id": "default", "execution_id": eid}]
    flow = uuid.UUID(int=uuid.UUID(eid[-36:]).int ^ (1 << 64))  # in the same partition
    rows(db, "ff_submit_flow", nodes=psycopg.types.json.Jsonb(nodes), flow_id=flow)


@pytest.mark.parametrize("make", [by_itself, in_a_flow])
def test_a_slot_asked_for_before_its_execution_was_created_ends_with_it(db, make):
    policy(db, at_once=1)
    eid = unknown()
    assert ask(db, eid)["outcome"] == "admitted"
    make(db, eid)
    assert violations(db) == []
    one(db, "ff_complete", handle=take(db)["handle"])
    assert limits(db)["active_concurrency"] == 0
    assert violations(db) == []


def test_an_execution_that_has_ended_holds_no_slot(db):
    policy(db, at_once=1, per_window=5)
    eid = create(db)
    one(db, "ff_cancel_execution", execution_id=eid)
    assert ask(db, eid)["outcome"] == "admitted"
    assert limits(db)["active_concurrency"] == 0
    assert limits(db)["window_count"] == 1
    assert violations(db) == []


def test_the_attempt_is_the_one_that_would_run_next(db):
    policy(db, per_window=9)
    at_once = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}
    retried = create(db, policy=at_once)
    one(db, "ff_fail", handle=take(db)["handle"])
    paused = create(db, priority=1)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=60_000)
    fresh = create(db)
    for eid in (retried, paused, fresh):
        ask(db, eid)
    asked = {str(r["execution_id"]): r["attempt_index"] for r in table(db, "select * from ff_quota_window")}
    assert [asked[eid.split(":")[-1]] for eid in (retried, paused, fresh)] == [1, 0, 0]


def test_a_released_slot_lets_a_parked_peer_go(db):
    policy(db, at_once=1)
    key = unknown()
    ask(db, key)
    eid = under(db)
    assert claim(db) is None
    assert state(db, eid) == "blocked_by_quota"
    give_back(db, key)
    assert take(db)["execution_id"] == eid


def test_a_refusal_writes_nothing(db):
    policy(db, at_once=1)
    ask(db, unknown())
    eid = create(db)
    before = execution(db, eid)
    assert ask(db, eid)["outcome"] == "concurrency_exceeded"
    assert execution(db, eid) == before
    assert written(db) == {"w": 1, "r": 1}


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_stale_snapshot_never_admits_one_too_many(db, connect, isolation):
    policy(db, at_once=1)
    stale = connect(autocommit=False)
    stale.execute(f"set transaction isolation level {isolation}")
    stale.execute("select count(*) from ff_exec_core")
    assert ask(db, unknown())["outcome"] == "admitted"
    with pytest.raises(psycopg.errors.SerializationFailure):
        ask(stale, unknown())
    stale.rollback()
    assert limits(db)["active_concurrency"] == 1


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_stale_claim_never_starts_one_too_many(db, connect, isolation):
    policy(db, at_once=1)
    many(db, 2, "q")
    stale = connect(autocommit=False)
    stale.execute(f"set transaction isolation level {isolation}")
    stale.execute("select count(*) from ff_exec_core")
    take(db)
    with pytest.raises(psycopg.errors.SerializationFailure):
        claim(stale)
    stale.rollback()
    assert limits(db)["active_concurrency"] == 1
    assert parked(db) == 0
