"""What a claim locks, what it reads, and in which order it hands out: independent of what else is on the lane."""

import pytest
from psycopg.rows import dict_row

from tests.postgres.helpers import until
from tests.sql import claim, create, one, rows, take, violations

WORKER = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w-1"}
HOUR = 3_600_000


def delays(db, clock, count):
    """Executions whose delay is over."""
    clock.freeze()
    eids = {create(db, delay_ms=10) for _ in range(count)}
    clock.advance(10)
    return eids


def lapsed_leases(db, clock, count):
    """Executions whose lease ran out."""
    clock.freeze()
    eids = {create(db) for _ in range(count)}
    rows(db, "ff_claim_many", limit=count, lease_ttl_ms=10, **WORKER)
    clock.advance(10)
    return eids


DUE = pytest.mark.parametrize("due", [delays, lapsed_leases])


@pytest.mark.no_serializable("commits transactions that have seen the rows of one another")
@DUE
def test_claims_in_open_transactions_share_what_is_due(db, connect, clock, due):
    eids = due(db, clock, 8)
    callers = [connect(autocommit=False) for _ in eids]
    got = [claim(caller) for caller in callers]
    assert {row["execution_id"] for row in got if row} == eids
    for caller in callers:
        caller.commit()
    assert violations(db) == []


@DUE
def test_a_claim_in_an_open_transaction_locks_only_what_it_hands_out(db, connect, clock, due):
    eids = due(db, clock, 3)
    holder = connect(autocommit=False)
    db.execute("set lock_timeout = '1s'")
    for eid in eids - {take(holder)["execution_id"]}:
        assert one(db, "ff_cancel_execution", execution_id=eid)["public_state"] == "cancelled"


@DUE
def test_what_is_due_competes_in_order_with_what_is_ready(db, clock, due):
    (eid,) = due(db, clock, 1)
    high, low = create(db, priority=1), create(db)
    assert [take(db)["execution_id"] for _ in range(3)] == [high, eid, low]


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
def test_overdue_rows_in_front_are_stepped_over_however_many(db, clock, function):
    clock.freeze()
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 200, deadline_at_ms=clock.now() + 10)
    clock.advance(10)
    eid = create(db)
    assert [row["execution_id"] for row in rows(db, function, **WORKER)] == [eid]


def blocks(db, **args):
    """How many blocks one claim reads, with all plans and catalogues in the cache; it is undone."""
    given = {**WORKER, "namespace": None, **args}
    query = """explain (analyze, buffers, timing off, format json)
               select * from ff_claim(%(lane_id)s, %(worker_id)s, %(worker_instance_id)s,
                                      p_namespace => %(namespace)s)"""
    found = 0
    for _ in range(3):
        with db.transaction(force_rollback=True):
            plan = db.cursor(row_factory=dict_row).execute(query, given).fetchone()["QUERY PLAN"][0]["Plan"]
        found = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    assert found > 0
    return found


def fill(db, count, **args):
    for _ in range(count // 1000):
        rows(db, "ff_create_executions", payloads=[b""] * 1000, **{"lane_id": "default", **args})


def test_a_claim_by_namespace_reads_no_more_behind_rows_of_another_one(db, dsn):
    create(db, "small", namespace="b")
    ordinary = blocks(db, lane_id="small", namespace="b")
    fill(db, 5000, namespace="a")
    create(db, namespace="b")
    assert blocks(db, namespace="b") <= 3 * ordinary


@pytest.mark.own_session("another session keeps its snapshot")
def test_an_empty_poll_reads_no_more_behind_dead_index_entries(db, connect):
    create(db, "small")
    ordinary = blocks(db, lane_id="small")
    reader = connect(autocommit=False)
    reader.execute("set transaction isolation level repeatable read")
    reader.execute("select from ff_now_ms()")  # its snapshot keeps the entries from being removed
    fill(db, 5000)
    for _ in range(5):
        rows(db, "ff_claim_many", limit=1000, lease_ttl_ms=HOUR, **WORKER)

    def spared() -> bool:
        create(db)
        take(db)
        assert claim(db) is None
        return blocks(db) <= 3 * ordinary

    until(spared)  # once the transactions that ran meanwhile have ended, of other tests on this server too


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_a_clock_that_steps_back_by_an_hour_hides_no_work(db, clock, function):
    clock.freeze()
    before = create(db)
    assert claim(db, "other") is None
    clock.advance(-HOUR)
    after = create(db)
    got = [row["execution_id"] for _ in range(2) for row in rows(db, function, **WORKER)]
    assert set(got) == {before, after}
    assert violations(db) == []


MANY = 20  # in a random order, the chance of the right one is below 10 ** -18


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_executions_of_one_session_are_handed_out_in_the_order_of_their_creation(db, clock, function):
    clock.freeze()
    created = [create(db) for _ in range(MANY)]
    got = [row["execution_id"] for _ in range(MANY) for row in rows(db, function, **WORKER)]
    assert got == created


def test_a_batch_is_handed_out_in_the_order_of_its_arrays(db, clock):
    clock.freeze()
    given = [bytes([n]) for n in range(MANY)]
    created = rows(db, "ff_create_executions", lane_id="default", payloads=given)
    got = rows(db, "ff_claim_many", limit=MANY, **WORKER)
    assert [row["payload"] for row in got] == given
    assert [row["execution_id"] for row in got] == [row["execution_id"] for row in created]
