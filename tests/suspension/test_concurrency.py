"""What others commit meanwhile: while a call waits for a lock, or behind the back of an old snapshot."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.races.test_lifecycle_races import wait_for_lock
from tests.sql import create, one, refused, table, take, violations
from tests.suspension.support import (
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
def test_a_key_that_nobody_touched_opens_it_at_every_isolation_level(db, connect, level):
    claim, point = suspended(db)
    old = snapshot(connect, level)
    assert deliver(old, claim, point)["resumed"]
    old.commit()
    assert len(signals(db, claim)) == 1


def test_a_key_that_is_killed_while_a_delivery_waits_opens_nothing(db, connect):
    claim, point = suspended(db)
    holder, sender = connect(autocommit=False), connect()
    holder.execute("select from ff_exec_core for update")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(deliver, sender, claim, point)
        wait_for_lock(db, sender)
        one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="k2", grace_ms=0)
        holder.rollback()
        with refused("token_expired"):
            answer.result(30)
    assert signals(db, claim) == []


