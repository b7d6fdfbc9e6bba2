"""Claims while a transaction elsewhere keeps dead index entries from being removed: they miss nothing, and never wait.

The entries of what was claimed stand at the head of the ready index, before everything that waits.
"""

from time import monotonic

import pytest

from tests.sql import claim, create, execution, one, rows, table, take, violations

MANY = 3000
HOUR = 3_600_000
WORKER = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w-1"}
RETRIED_AT_ONCE = {"retry_policy": {"max_retries": 9, "backoff": {"type": "fixed", "delay_ms": 0}}}

BOTH = pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])


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
        got = rows(conn, "ff_claim_many", limit=1000, capabilities=["a"], **WORKER)
        rows(conn, "ff_complete_many", handles=[r["handle"] for r in got])


def drain(conn, function="ff_claim", **args):
    """What claims hand out until they find nothing, in their order."""
    found = []
    while got := rows(conn, function, lease_ttl_ms=24 * HOUR, **WORKER, **args):
        found += [row["execution_id"] for row in got]
    return found


@pytest.fixture
def held(db, connect, clock):
    """A lane with many dead entries at the head of its ready index, held there by a snapshot."""
    clock.freeze()
    create(db)
    take(db)
    reader = connect(autocommit=False)
    reader.execute("set transaction isolation level repeatable read")
    reader.execute("select count(*) from ff_exec_core")
    work_off(db, MANY, priorities=[5] * MANY)
    clock.advance(10_000)
    yield reader
    reader.rollback()


@BOTH
def test_what_waits_behind_dead_entries_is_handed_out_in_its_order(db, clock, held, submit, function):
    waiting = [submit(priority=5) for _ in range(30)]
    clock.advance(5000)
    assert drain(db, function) == waiting
    assert violations(db) == []


def test_what_becomes_ready_again_is_claimed_in_its_turn(db, clock, held, submit):
    old, *_, last = [submit(priority=5, policy=RETRIED_AT_ONCE) for _ in range(4)]
    clock.advance(5000)
    row = take(db)
    assert row["execution_id"] == old
    clock.advance(5000)
    for _ in range(2):
        take(db)
    assert take(db)["execution_id"] == last
    one(db, "ff_fail", handle=row["handle"])
    created = submit(priority=5)
    assert take(db)["execution_id"] == old
    assert take(db)["execution_id"] == created
    assert execution(db, last)["public_state"] == "active"


@BOTH
@pytest.mark.parametrize("way", ["revoked", "lapsed", "higher priority", "delay", "no delay", "grant"])
def test_no_way_back_into_ready_is_missed(db, clock, held, submit, way, function):
    old = submit(priority=5)
    clock.advance(5000)
    row = take(db, lease_ttl_ms=60_000)
    later = [submit(priority=5) for _ in range(3)]
    if way == "revoked":
        one(db, "ff_revoke_lease", execution_id=old)
    elif way == "lapsed":
        clock.advance(60_000)
    elif way == "delay":
        one(db, "ff_delay", handle=row["handle"], delay_ms=10)
        clock.advance(10)
    else:
        one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    if way == "higher priority":
        one(db, "ff_change_priority", execution_id=old, priority=9)
    elif way == "grant":
        other = {"worker_id": "x", "worker_instance_id": "x-1"}
        one(db, "ff_issue_claim_grant", execution_id=old, grant_ttl_ms=1000, **other)
        clock.advance(1000)
    assert drain(db, function)[:4] == [old, *later]


@pytest.mark.parametrize("way", ["revoked", "lapsed", "delay"])
def test_a_lower_priority_is_not_taken_before_what_comes_back(db, clock, held, submit, way):
    old = submit(priority=5)
    row = take(db, lease_ttl_ms=1000)
    low, equal, high = submit(priority=4), submit(priority=5), submit(priority=6)
    if way == "revoked":
        one(db, "ff_revoke_lease", execution_id=old)
    elif way == "lapsed":
        clock.advance(1000)
    else:
        one(db, "ff_delay", handle=row["handle"], delay_ms=10)
        clock.advance(10)
    assert drain(db)[:4] == [high, old, equal, low]


def test_other_priorities_and_capabilities_keep_their_order(db, clock, held, submit):
    low = submit(priority=1)
    middle = submit(priority=5, required_capabilities=["a"])
    high = submit(priority=7)
    clock.advance(5000)
    take(db)
    again = submit(priority=7)
    assert take(db, capabilities=["a"])["execution_id"] == again
    assert take(db, capabilities=["a"])["execution_id"] == middle
    assert take(db, capabilities=["a"])["execution_id"] == low
    assert execution(db, high)["public_state"] == "active"


@BOTH
def test_nothing_is_missed_once_the_dead_rows_are_gone(db, clock, held, submit, function):
    waiting = [submit(priority=5, required_capabilities=[["a"], []][n % 2]) for n in range(6)]
    clock.advance(5000)
    first = take(db, lease_ttl_ms=24 * HOUR)["execution_id"]
    assert first == waiting[1]
    held.rollback()
    db.execute("vacuum ff_execution")
    clock.advance(600_000)
    crashed = claim(db, capabilities=["none"], lease_ttl_ms=24 * HOUR)
    assert crashed is not None
    left = [eid for eid in waiting if eid not in (first, crashed["execution_id"])]
    got = drain(db, function, capabilities=["a"])
    assert [eid for eid in got if eid in left] == left
    assert rows(db, "ff_list_executions", public_state="waiting") == []
    assert violations(db) == []


def test_claims_never_wait_for_one_another(db, connect, clock, held, submit):
    old = submit(priority=5, policy=RETRIED_AT_ONCE)
    for _ in range(400):
        submit(priority=5)
    clock.advance(5000)
    row = take(db)
    assert row["execution_id"] == old
    rows(db, "ff_claim_many", limit=350, **WORKER)
    clock.advance(5000)
    first, second = connect(autocommit=False), connect()
    second.execute("set lock_timeout = '5s'")
    one(first, "ff_fail", handle=row["handle"])  # is ready again at the head, and stays open
    assert take(first)["execution_id"] == old
    got = {take(second)["execution_id"] for _ in range(3)}
    assert len(got) == 3
    assert old not in got
    first.rollback()
    assert violations(db) == []


def test_claims_in_open_transactions_share_what_waits(db, connect, clock, held, submit):
    waiting = [submit(priority=5) for _ in range(6)]
    callers = [connect(autocommit=False) for _ in waiting]
    for caller in callers:
        caller.execute("set lock_timeout = '5s'")
    got = [take(caller)["execution_id"] for caller in callers]
    assert sorted(got) == sorted(waiting)
    assert claim(db) is None
    for caller in callers:
        caller.rollback()
    assert drain(db) == waiting


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
@BOTH
def test_what_is_committed_after_others_overtook_it_is_the_next(db, connect, clock, held, submit, function):
    old = submit(priority=5, policy=RETRIED_AT_ONCE)
    slow, creator = connect(autocommit=False), connect(autocommit=False)
    row = take(db, lease_ttl_ms=24 * HOUR)
    assert row["execution_id"] == old
    one(slow, "ff_fail", handle=row["handle"])
    unseen = create(creator, priority=5)
    work_off(db, 1000, priorities=[5] * 1000)
    clock.advance(5000)
    later = [submit(priority=5) for _ in range(3)]
    assert take(db)["execution_id"] == later[0]
    slow.commit()
    assert take(db)["execution_id"] == old
    creator.commit()
    assert drain(db, function) == [unseen, *later[1:]]
    assert violations(db) == []


@BOTH
@pytest.mark.parametrize("step_ms", [-HOUR, HOUR])
def test_a_clock_that_steps_hides_nothing(db, clock, held, submit, step_ms, function):
    submit(priority=5)
    before = submit(priority=5)
    clock.advance(5000)
    take(db, lease_ttl_ms=24 * HOUR)
    clock.advance(step_ms)
    after = submit(priority=5)
    delayed = submit(priority=5, delay_ms=10)
    clock.advance(10)
    assert drain(db, function)[:3] == [before, after, delayed]


def test_an_execution_is_handed_out_once_whatever_came_between(db, clock, held, submit):
    """Priorities, capabilities, delays, grants and clock steps together: all of it comes, the highest first."""
    created = {}
    for n in range(120):
        needs = [["a"], ["b"], []][n % 3]
        delay = {"delay_ms": n} if n % 5 == 0 else {}
        eid = submit(priority=n % 4, required_capabilities=needs, **delay)
        created[eid] = n % 4
        if n % 17 == 0:
            take(db, capabilities=["a", "b"], lease_ttl_ms=1 + n)
        if n % 40 == 39:
            clock.advance(-HOUR)
            work_off(db, 1000, priorities=[9] * 1000)
    clock.advance(4 * HOUR)
    got = [eid for eid in drain(db, "ff_claim_many", capabilities=["a", "b"]) if eid in created]
    assert sorted(got) == sorted(created)
    assert [created[eid] for eid in got] == sorted(created.values(), reverse=True)
    assert {row["public_state"] for row in rows(db, "ff_list_executions", limit=1000)} <= {
        "active",
        "completed",
    }
    assert table(db, "select from ff_exec_core where lifecycle_phase = 'runnable'") == []
    assert violations(db) == []


MOVE = "select ff__move_start(array(select q.queue_id from ff_queue q))"


def pages_read(conn):
    """By a claim that finds nothing."""
    query = "explain (analyze, buffers, format json) select * from ff_claim(%s, 'w', 'w-1')"
    (plan,) = conn.execute(query, ["default"]).fetchone()
    return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]


@pytest.mark.read_committed("the points do not move in a transaction")
def test_an_empty_claim_does_not_read_the_leases_of_what_has_ended(db, clock, held):
    work_off(db, MANY)
    clock.advance(60_000)
    drain(db)
    # The point moves when all transactions of the server have ended that had an id at the move before.
    end = monotonic() + 90
    while table(db, "select start_due_ms from ff_queue") != [{"start_due_ms": clock.now()}]:
        assert monotonic() < end
        db.execute(MOVE)
    few = pages_read(db)
    db.execute("update ff_queue set start_due_ms = 0")
    assert pages_read(db) > few + MANY / 10
    assert violations(db) == []


@BOTH
def test_what_is_due_in_an_open_transaction_is_found_after_its_commit(db, connect, clock, held, function):
    """However often the points have moved meanwhile."""
    slow = connect(autocommit=False)
    delayed = create(slow, delay_ms=10)
    for _ in range(3):
        clock.advance(10_000)
        db.execute(MOVE)
    later = create(db)
    slow.commit()
    assert [eid for eid in drain(db, function) if eid in (delayed, later)] == [delayed, later]


@BOTH
def test_what_became_due_while_the_clock_was_behind_is_found_when_it_is_right(db, clock, held, function):
    for _ in range(3):
        clock.advance(10_000)
        db.execute(MOVE)
    drain(db, function)
    clock.advance(-HOUR)
    delayed = create(db, delay_ms=10)
    clock.advance(2 * HOUR)
    create(db)
    assert delayed in drain(db, function)
    assert violations(db) == []


def test_after_a_rebase_no_turn_is_too_low(db, connect):
    """The turns of a copy may be behind its rows: sequences are not replicated logically."""
    for _ in range(3):
        create(db)
        take(db)
        db.execute(MOVE)
    db.execute("alter sequence ff_turn_seq restart")
    one(db, "ff_rebase_events")
    eid = create(db)
    assert take(db)["execution_id"] == eid
    assert violations(db) == []
