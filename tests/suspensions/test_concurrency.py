"""What others commit meanwhile: while a call waits for a lock, or behind the back of an old snapshot."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.executions.test_lifecycle_races import wait_for_lock
from tests.sql import create, one, refused, table, take, violations
from tests.suspensions.support import (
    OPERATOR_ONLY,
    all_of,
    count,
    deliver,
    run,
    seed,
    signals,
    single,
    suspend,
    suspended,
)

pytestmark = pytest.mark.modes

STRICT = ["repeatable read", "serializable"]


def snapshot(connect, level):
    """A connection whose transaction looks at the database as it is now."""
    conn = connect(autocommit=False)
    conn.execute(f"set transaction isolation level {level}")
    conn.execute("select count(*) from ff_signal")
    return conn


@pytest.mark.parametrize("level", STRICT)
def test_an_old_snapshot_does_not_open_a_waitpoint_with_a_key_that_was_killed_since(db, connect, level):
    claim, point = suspended(db, count(2, "signals", ["approval"]))
    old = snapshot(connect, level)
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k2", grace_ms=0)
    with pytest.raises(psycopg.errors.SerializationFailure):
        deliver(old, claim, point)
    old.rollback()
    with refused("token_expired"):
        deliver(old, claim, point)
    old.rollback()
    assert signals(db, claim) == []


@pytest.mark.parametrize("level", STRICT)
def test_an_untouched_key_opens_it_at_every_isolation_level(db, connect, level):
    claim, point = suspended(db)
    old = snapshot(connect, level)
    assert deliver(old, claim, point)["resumed"]
    old.commit()
    assert len(signals(db, claim)) == 1


def test_a_key_that_is_killed_while_a_delivery_waits_opens_nothing(db, connect):
    claim, point = suspended(db)
    holder, sender = connect(autocommit=False), connect()
    holder.execute("select from ff_execution for update")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(deliver, sender, claim, point)
        wait_for_lock(db, sender)
        one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k2", grace_ms=0)
        holder.rollback()
        with refused("token_expired"):
            answer.result(90)
    assert signals(db, claim) == []


def bind_while_it_is_made(db, connect, condition, made, *more):
    """The answer to a suspension that binds a waitpoint which another transaction is about to commit."""
    claim = run(db)
    maker, worker = connect(autocommit=False), connect()
    point = uuid.uuid4()
    one(maker, "ff_create_waitpoint", handle=claim["handle"], waitpoint_key=made, waitpoint_id=point)
    with ThreadPoolExecutor(1) as pool:
        bind = [{"use_pending": str(point)}, *more]
        answer = pool.submit(suspend, worker, claim["handle"], condition, waitpoints=bind)
        wait_for_lock(db, worker)
        maker.commit()
        return answer.result(90)


@pytest.mark.parametrize(
    ("condition", "made", "more", "reason", "key"),
    [
        (single("approval"), "other", [], "binding_not_referenced", "other"),
        (single("approval"), "approval", [{"key": "approval"}], "duplicate_waitpoint_key", "approval"),
        (OPERATOR_ONLY, "a", [{"key": "a"}], "duplicate_waitpoint_key", "a"),
        (all_of(single("a"), single("b")), "a", [], "waitpoint_key_not_bound", "b"),
    ],
)
def test_a_waitpoint_that_is_made_meanwhile_must_fit_the_condition(
    db, connect, condition, made, more, reason, key
):
    with refused("invalid_waitpoint_binding") as refusal:
        bind_while_it_is_made(db, connect, condition, made, *more)
    assert (refusal.detail["reason"], refusal.detail["key"]) == (reason, key)
    assert violations(db) == []


def test_a_waitpoint_that_is_made_meanwhile_is_bound_under_its_own_key(db, connect):
    (row,) = bind_while_it_is_made(db, connect, single("approval", "approve"), "approval")
    assert (row["outcome"], row["waitpoint_key"]) == ("suspended", "approval")
    assert table(db, "select required_signal_names from ff_waitpoint") == [
        {"required_signal_names": ["approve"]}
    ]


@pytest.mark.parametrize("level", ["read committed", *STRICT])
@pytest.mark.parametrize(
    ("function", "argument", "outcome"),
    [
        ("ff_seed_waitpoint_hmac_secret", "kid", "already_seeded"),
        ("ff_rotate_waitpoint_hmac_secret", "new_kid", "noop"),
    ],
)
def test_two_first_keys_at_once_are_one_key_or_a_reason_to_try_again(
    db, connect, level, function, argument, outcome
):
    db.execute("delete from ff_waitpoint_hmac")
    first, second = connect(autocommit=False), connect(autocommit=False)
    second.execute(f"set transaction isolation level {level}")
    one(first, function, **{argument: "k1"})
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(one, second, function, **{argument: "k1"})
        wait_for_lock(db, second)
        first.commit()
        if level == "read committed":
            assert answer.result(90)["outcome"] == outcome
        else:
            with pytest.raises(psycopg.errors.SerializationFailure):
                answer.result(90)
            second.rollback()
            assert one(second, function, **{argument: "k1"})["outcome"] == outcome
    second.commit()
    assert table(db, "select kid, active from ff_waitpoint_hmac") == [{"kid": "k1", "active": True}]


def test_chosen_ids_are_taken_in_their_own_order(db, connect):
    """Whatever the order of the bindings, so that two suspensions that want the same ids cannot deadlock."""
    seed(db)
    claims = []
    for _ in range(3):
        create(db)
        claims.append(take(db))
    low, high = sorted(uuid.uuid4() for _ in range(2))
    holder, worker = connect(autocommit=False), connect()
    one(holder, "ff_create_waitpoint", handle=claims[0]["handle"], waitpoint_id=low)
    bind = [{"key": "a", "waitpoint_id": str(high)}, {"key": "b", "waitpoint_id": str(low)}]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(
            suspend, worker, claims[1]["handle"], all_of(single("a"), single("b")), waitpoints=bind
        )
        wait_for_lock(db, worker)  # for the low one: the high one is free
        db.execute("set lock_timeout = '20s'")
        try:
            created = one(db, "ff_create_waitpoint", handle=claims[2]["handle"], waitpoint_id=high)
            one(db, "ff_close_waitpoint", handle=claims[2]["handle"], waitpoint_id=high)
        finally:
            holder.rollback()
        with refused("waitpoint_conflict") as refusal:
            answer.result(90)
    assert created["outcome"] == "created"
    assert refusal.detail["waitpoint_id"] == str(high)


def test_rows_come_in_the_order_of_the_bindings(db):
    claim = run(db)
    low, high = sorted(uuid.uuid4() for _ in range(2))
    bind = [{"key": "a", "waitpoint_id": str(high)}, {"key": "b", "waitpoint_id": str(low)}]
    found = suspend(db, claim["handle"], all_of(single("b"), single("a")), waitpoints=bind)
    assert [(r["ordinal"], r["waitpoint_key"], r["waitpoint_id"]) for r in found] == [
        (0, "a", high),
        (1, "b", low),
    ]
    again = suspend(db, claim["handle"], all_of(single("b"), single("a")), waitpoints=bind)
    assert again == [{**r, "replayed": True} for r in found]
    assert violations(db) == []
