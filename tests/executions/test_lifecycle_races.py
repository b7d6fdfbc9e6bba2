"""Real connections at the same time: each execution is handed out once, each key is used once, one end wins."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.sql import claim, create, events, one, rows, table, take, violations, wait_for_lock

pytestmark = pytest.mark.modes


def together(count, work):
    """Runs work(n) in `count` threads that start at the same moment; the results in order."""
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.parametrize(("claimers", "executions"), [(8, 40), (8, 3)])
def test_every_execution_is_claimed_once_and_no_claim_waits(db, connect, claimers, executions):
    for n in range(executions + 5):
        create(db, priority=n % 3, required_capabilities=["a"] if n % 2 else [])
    holder = connect(autocommit=False)
    held = {take(holder, capabilities=["a"])["execution_id"] for _ in range(5)}
    conns = [connect() for _ in range(claimers)]
    for conn in conns:
        conn.execute("set lock_timeout = '5s'")  # a statement that waits for the holder fails

    def work(n):
        got = []
        while row := claim(conns[n], worker=f"w{n}", capabilities=["a"]):
            got.append(row["execution_id"])
        return got

    got = Counter(eid for batch in together(claimers, work) for eid in batch)
    assert len(got) == executions
    assert set(got.values()) == {1}
    assert not held & set(got)
    holder.rollback()
    assert {take(db, capabilities=["a"])["execution_id"] for _ in held} == held
    assert violations(db) == []


def test_a_claim_steps_over_rows_that_others_hold(db, connect):
    first, second = create(db, priority=9), create(db)
    holder = connect(autocommit=False)
    assert take(holder)["execution_id"] == first
    assert take(db)["execution_id"] == second
    assert claim(db) is None
    holder.rollback()
    assert take(db)["execution_id"] == first


def test_a_claim_over_several_sets_steps_over_rows_that_others_hold(db, connect):
    held = [create(db, priority=9, required_capabilities=[name]) for name in "abcde" for _ in range(5)]
    free = create(db, required_capabilities=["a"])
    holder = connect(autocommit=False)
    worker = {"capabilities": list("abcde")}
    assert {take(holder, **worker)["execution_id"] for _ in held} == set(held)
    assert take(db, **worker)["execution_id"] == free
    assert claim(db, **worker) is None


def test_a_lapsed_lease_is_reclaimed_by_one_worker_only(db, connect, clock):
    clock.freeze()
    eid = create(db)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    conns = [connect() for _ in range(6)]
    got = [row for row in together(6, lambda n: claim(conns[n], worker=f"w{n}")) if row]
    assert [row["execution_id"] for row in got] == [eid]
    assert got[0]["lease_epoch"] == 2
    assert violations(db) == []


def test_concurrent_requests_with_one_key_create_one_execution(db, connect):
    conns = [connect() for _ in range(8)]
    got = together(8, lambda n: one(conns[n], "ff_create_execution", lane_id="new", idempotency_key="k"))
    assert Counter(row["outcome"] for row in got) == {"created": 1, "duplicate": 7}
    assert len({row["execution_id"] for row in got}) == 1
    assert violations(db) == []


def test_a_request_waits_for_the_holder_of_its_key_and_creates_if_that_one_rolls_back(db, connect):
    holder, waiter = connect(autocommit=False), connect()
    one(holder, "ff_create_execution", lane_id="default", idempotency_key="k")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(one, waiter, "ff_create_execution", lane_id="default", idempotency_key="k")
        wait_for_lock(db, waiter)
        holder.rollback()
        assert answer.result(90)["outcome"] == "created"


def test_concurrent_requests_with_one_execution_id_create_one_execution(db, connect):
    eid = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    conns = [connect() for _ in range(8)]
    got = together(8, lambda n: one(conns[n], "ff_create_execution", lane_id="new", execution_id=eid))
    assert Counter(row["outcome"] for row in got) == {"created": 1, "duplicate": 7}
    assert violations(db) == []


def test_concurrent_first_submissions_to_a_lane_all_succeed(db, connect):
    conns = [connect() for _ in range(8)]
    got = together(8, lambda n: one(conns[n], "ff_create_execution", lane_id="fresh"))
    assert {row["outcome"] for row in got} == {"created"}
    assert len(table(db, "select * from ff_lane_registry")) == 1


def test_concurrent_completions_with_one_handle_end_it_once(db, connect):
    eid = create(db)
    handle = take(db)["handle"]
    conns = [connect() for _ in range(6)]
    got = together(6, lambda n: one(conns[n], "ff_complete", handle=handle, result=str(n).encode()))
    assert Counter(row["replayed"] for row in got) == {False: 1, True: 5}
    winner = next(n for n, row in enumerate(got) if not row["replayed"])
    assert table(db, "select result from ff_attempt")[0]["result"] == str(winner).encode()
    assert events(db, eid).count("completion/success") == 1


def test_renewal_and_reclaim_at_the_end_of_a_lease_do_not_both_win(db, connect, clock):
    clock.freeze()
    conns = [connect() for _ in range(4)]
    for _ in range(20):
        create(db)
        row = take(db, lease_ttl_ms=10)
        clock.advance(10)

        def work(n, row=row):
            if n % 2:
                return claim(conns[n], worker="thief", lease_ttl_ms=10)
            try:
                return one(conns[n], "ff_renew", handle=row["handle"])
            except psycopg.Error as error:
                assert error.sqlstate in ("WF401", "WF402"), error
                return None

        renewed = [r for n, r in enumerate(together(4, work)) if r and n % 2 == 0]
        assert renewed == []
        clock.advance(10)
        while again := claim(db):
            one(db, "ff_complete", handle=again["handle"])
    assert violations(db) == []


@pytest.mark.read_committed("the clock of the tests is a row, which a snapshot shows as it was")
@pytest.mark.parametrize("function", ["ff_complete", "ff_renew", "ff_complete_many", "ff_renew_many"])
def test_a_waiter_checks_the_lease_at_the_time_it_got_the_lock(db, connect, clock, function):
    clock.freeze()
    create(db)
    handle = take(db, lease_ttl_ms=1000)["handle"]
    args = {"handles": [handle]} if function.endswith("many") else {"handle": handle}
    holder, waiter = connect(autocommit=False), connect()
    holder.execute("select 1 from ff_exec_core for update")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rows, waiter, function, **args)
        wait_for_lock(db, waiter)
        clock.advance(1000)
        holder.rollback()
        if function.endswith("many"):
            assert [row["error_kind"] for row in answer.result(90)] == ["lease_expired"]
            return
        with pytest.raises(psycopg.Error) as caught:
            answer.result(90)
    assert caught.value.sqlstate == "WF402"


@pytest.mark.read_committed("the clock of the tests is a row, which a snapshot shows as it was")
@pytest.mark.parametrize("function", ["ff_complete", "ff_complete_many", "ff_fail"])
def test_an_end_that_waited_for_the_row_is_later_than_what_held_it(db, connect, clock, function):
    clock.freeze()
    eid = create(db)
    handle = take(db)["handle"]
    args = {"handles": [handle]} if function.endswith("many") else {"handle": handle}
    holder, waiter = connect(autocommit=False), connect()
    holder.execute("select from ff_execution for no key update")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rows, waiter, function, **args)
        wait_for_lock(db, waiter)
        clock.advance(1000)
        holder.rollback()
        answer.result(90)
    assert one(db, "ff_describe_execution", execution_id=eid)["terminal_at_ms"] == clock.now()


def test_overlapping_batches_of_keys_do_not_deadlock(db, connect):
    conns = [connect() for _ in range(4)]
    keys = [f"key-{n}" for n in range(40)]

    def work(n):
        order = keys if n % 2 else keys[::-1]
        return rows(
            conns[n], "ff_create_executions", lane_id="b", payloads=[b""] * 40, idempotency_keys=order
        )

    for _ in range(5):
        answers = together(4, work)
        assert {len({row["execution_id"] for row in answer}) for answer in answers} == {40}
    assert len(table(db, "select * from ff_exec_core")) == 40
    assert violations(db) == []


def test_overlapping_batch_claims_and_completions_share_the_work(db, connect):
    conns = [connect() for _ in range(4)]
    rows(db, "ff_create_executions", lane_id="b", payloads=[b""] * 200)

    def work(n):
        done = []
        while batch := rows(
            conns[n], "ff_claim_many", lane_id="b", worker_id="w", worker_instance_id=f"w{n}", limit=7
        ):
            handles = [row["handle"] for row in batch]
            done += handles
            answer = rows(conns[n], "ff_complete_many", handles=handles[::-1])
            assert {row["outcome"] for row in answer} == {"completed"}
        return done

    done = [handle for handles in together(4, work) for handle in handles]
    assert len(done) == len(set(done)) == 200
    assert violations(db) == []


def test_two_batches_of_the_same_handles_in_opposite_order_do_not_deadlock(db, connect):
    conns = [connect() for _ in range(2)]
    rows(db, "ff_create_executions", lane_id="b", payloads=[b""] * 100)
    leases = rows(db, "ff_claim_many", lane_id="b", worker_id="w", worker_instance_id="w", limit=100)
    handles = [row["handle"] for row in leases]
    answers = together(2, lambda n: rows(conns[n], "ff_complete_many", handles=handles[:: 1 - 2 * n]))
    assert sorted(row["replayed"] for answer in answers for row in answer) == [False] * 100 + [True] * 100
    assert violations(db) == []
