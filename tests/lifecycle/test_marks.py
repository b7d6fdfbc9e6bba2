"""Claims while a transaction elsewhere keeps dead rows from being removed: they step over them, and miss nothing."""

import pytest

from tests.sql import claim, create, execution, one, rows, table, take, violations

MANY = 5000
# A walk counts this many times in these tests, so that they need not make tens of thousands of dead rows.
SCALE = 5
WORKER = {"worker_id": "w", "worker_instance_id": "w-1"}


def walked(conn, **args):
    """How many index entries one claim read; what it got."""
    with conn.transaction():
        before = table(conn, "select ff__walked() as n")[0]["n"]
        row = claim(conn, **args)
        return (table(conn, "select ff__walked() as n")[0]["n"] - before) // SCALE, row


@pytest.fixture
def submit(db, clock):
    """Creates an execution, a millisecond after the one before."""

    def run(**args):
        clock.advance(1)
        return create(db, **args)

    return run


def work_off(conn, count, **args):
    rows(conn, "ff_create_executions", lane_id="default", payloads=[b""] * count, **args)
    for _ in range(count // 1000):
        got = rows(conn, "ff_claim_many", lane_id="default", limit=1000, **WORKER, capabilities=["a"])
        rows(conn, "ff_complete_many", handles=[r["handle"] for r in got])


@pytest.fixture
def held(db, connect, clock):
    """A lane with many dead entries at the head of its ready index, held there by a snapshot; two rows wait behind."""
    clock.freeze()
    body = table(db, "select prosrc from pg_proc where proname = 'ff__walked'")[0]["prosrc"]
    walked = "create or replace function ff.ff__walked() returns bigint language sql volatile as "
    db.execute(f"{walked} $f$ select {SCALE} * w.n from ({body}) w(n) $f$")
    create(db)
    take(db)
    reader = connect(autocommit=False)
    reader.execute("set transaction isolation level repeatable read")
    reader.execute("select count(*) from ff_exec_core")
    work_off(db, MANY, priorities=[5] * MANY)
    clock.advance(10_000)
    yield reader
    reader.rollback()
    db.execute(f"{walked} $f$ {body} $f$")


def test_after_a_long_walk_claims_start_behind_what_is_dead(db, clock, held, submit):
    first, second, third = (submit(priority=5) for _ in range(3))
    clock.advance(5000)
    long, row = walked(db)
    assert row["execution_id"] == first
    assert long > MANY
    short, row = walked(db)
    assert row["execution_id"] == second
    assert short < 1000
    assert take(db)["execution_id"] == third
    assert claim(db) is None
    assert violations(db) == []


def test_what_becomes_ready_behind_a_mark_is_claimed_in_its_turn(db, clock, held, submit):
    policy = {"retry_policy": {"max_retries": 9, "backoff": {"type": "fixed", "delay_ms": 0}}}
    old, *_, last = [submit(priority=5, policy=policy) for _ in range(4)]
    clock.advance(5000)
    row = take(db)
    assert row["execution_id"] == old
    assert table(db, "select * from ff_scan_mark where priority = 5") != []
    clock.advance(5000)
    for _ in range(2):
        take(db)
    walked(db)  # the mark has moved on to the last one, if it moved
    one(db, "ff_fail", handle=row["handle"])
    created = submit(priority=5)
    assert take(db)["execution_id"] == old
    assert take(db)["execution_id"] == created
    assert execution(db, last)["public_state"] == "active"


@pytest.mark.parametrize("way", ["revoked", "lapsed", "higher priority", "delay"])
def test_no_way_back_into_ready_is_missed(db, clock, held, submit, way):
    old = submit(priority=5)
    clock.advance(5000)
    row = take(db, lease_ttl_ms=60_000)
    for _ in range(3):
        submit(priority=5)
    if way == "revoked":
        one(db, "ff_revoke_lease", execution_id=old)
    elif way == "lapsed":
        clock.advance(60_000)
    elif way == "delay":
        one(db, "ff_delay", handle=row["handle"], delay_ms=10)
        clock.advance(10)
    else:
        one(db, "ff_delay", handle=row["handle"], delay_ms=0)
        one(db, "ff_change_priority", execution_id=old, priority=9)
    assert take(db)["execution_id"] == old


def test_other_priorities_and_capabilities_keep_their_order(db, clock, held, submit):
    low = submit(priority=1)
    middle = submit(priority=5, required_capabilities=["a"])
    high = submit(priority=7)
    clock.advance(5000)
    walked(db)
    again = submit(priority=7)
    assert take(db, capabilities=["a"])["execution_id"] == again
    assert take(db, capabilities=["a"])["execution_id"] == middle
    assert take(db, capabilities=["a"])["execution_id"] == low
    assert execution(db, high)["public_state"] == "active"


def test_marks_go_when_the_dead_rows_are_gone(db, clock, held, submit):
    submit(priority=5)
    clock.advance(5000)
    take(db)
    assert table(db, "select * from ff_lane_registry where marked") != []
    held.rollback()
    db.execute("vacuum ff_exec_core")
    clock.advance(600_000)
    assert claim(db, capabilities=["none"]) is not None  # the first lease ran out
    clock.advance(600_000)
    while claim(db):
        pass
    assert table(db, "select * from ff_scan_mark") == []
    assert table(db, "select * from ff_lane_registry where marked") == []


def test_a_mark_that_passed_something_is_found_out(db, clock, held, submit):
    """As if somebody had committed behind it, unseen: the next look behind the marks finds it."""
    hidden = submit(priority=5)
    submit(priority=5)
    clock.advance(5000)
    take(db)
    take(db)
    db.execute("update ff_scan_mark set from_ms = from_ms + 100000 where priority = 5")
    db.execute(
        "update ff_exec_core set reserved_until_ms = null where execution_id = %s", [hidden.split(":")[-1]]
    )
    row = submit(priority=5)
    assert claim(db) is None
    clock.advance(120_000)
    found = [r["execution_id"] for r in iter(lambda: claim(db, lease_ttl_ms=86_400_000), None)]
    assert row in found


def test_claims_never_wait_for_one_another_over_a_mark(db, connect, clock, held, submit):
    policy = {"retry_policy": {"max_retries": 9, "backoff": {"type": "fixed", "delay_ms": 0}}}
    old = submit(priority=5, policy=policy)
    for _ in range(400):
        submit(priority=5)
    clock.advance(5000)
    row = take(db)
    assert row["execution_id"] == old
    rows(db, "ff_claim_many", lane_id="default", limit=350, **WORKER)
    clock.advance(5000)
    first, second = connect(autocommit=False), connect()
    second.execute("set lock_timeout = '5s'")
    one(first, "ff_fail", handle=row["handle"])  # moves the mark back, and stays open
    take(first)
    for _ in range(3):
        take(second)
    first.rollback()
    assert violations(db) == []


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_what_was_passed_over_unseen_is_found_however_busy_the_lane_is(db, connect, clock, held, submit):
    """It became ready before there was a mark, in a transaction that committed after."""
    policy = {"retry_policy": {"max_retries": 9, "backoff": {"type": "fixed", "delay_ms": 0}}}
    old = submit(priority=5, policy=policy)
    slow = connect(autocommit=False)
    row = take(db, lease_ttl_ms=86_400_000)
    assert row["execution_id"] == old
    one(slow, "ff_fail", handle=row["handle"])
    work_off(db, 3000, priorities=[5] * 3000)
    clock.advance(5000)
    submit(priority=5)
    take(db)
    assert table(db, "select * from ff_scan_mark where priority = 5") != []
    slow.commit()
    for _ in range(1000):  # about one claim in twenty looks behind the marks
        clock.advance(20)
        submit(priority=5)
        if take(db)["execution_id"] == old:
            break
    else:
        raise AssertionError("never handed out")


@pytest.mark.xfail(
    strict=True, reason="the rebuilt claim path brings this: a mark still hides work from before it"
)
def test_a_clock_that_steps_back_by_an_hour_hides_nothing_behind_a_mark(db, clock, held, submit):
    submit(priority=5)
    clock.advance(5000)
    take(db)  # the long walk leaves a mark
    clock.advance(-3_600_000)
    eid = submit(priority=5)
    assert take(db)["execution_id"] == eid
