"""Grants at the same time: one execution, one grant, one lease, in any order."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.sql import claim, create, events, execution, one, rows, table, take, violations, wait_for_lock

pytestmark = pytest.mark.modes


def together(count, work):
    """Runs work(n) in `count` threads that start at the same moment; the results in order."""
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def attempt(conn, function, *expected, **args):
    """The first row, or the kind of an expected refusal."""
    try:
        found = rows(conn, function, **args)
    except psycopg.Error as error:
        kind = table(conn, "select kind from ff_error_code where sqlstate = %s", error.sqlstate)[0]["kind"]
        assert kind in expected, error
        return kind
    return found[0] if found else None


def worker(n):
    return {"worker_id": f"w{n}", "worker_instance_id": f"w{n}-1"}


@pytest.mark.parametrize("kind", ["claim", "reclaim"])
def test_of_workers_that_ask_for_one_execution_one_is_granted_it(db, connect, clock, kind):
    clock.freeze()
    eid = create(db)
    if kind == "reclaim":
        take(db, lease_ttl_ms=10)
        clock.advance(10)
    conns = [connect() for _ in range(6)]
    got = together(
        6,
        lambda n: attempt(
            conns[n], f"ff_issue_{kind}_grant", "grant_already_exists", execution_id=eid, **worker(n)
        ),
    )
    assert Counter(r if isinstance(r, str) else r["outcome"] for r in got) == {
        "granted": 1,
        "grant_already_exists": 5,
    }
    assert len(table(db, "select * from ff_claim_grant")) == 1
    assert events(db, eid).count("lease/expired:ttl") == (kind == "reclaim")
    assert violations(db) == []


def test_one_worker_asking_at_once_gets_one_grant(db, connect):
    eid = create(db)
    conns = [connect() for _ in range(6)]
    got = together(6, lambda n: one(conns[n], "ff_issue_claim_grant", execution_id=eid, **worker(0)))
    assert Counter(row["outcome"] for row in got) == {"granted": 1, "already_granted": 5}
    assert len({row["grant_id"] for row in got}) == 1


@pytest.mark.parametrize(("schedulers", "executions"), [(6, 24), (6, 2)])
def test_every_execution_is_granted_once_and_no_scheduler_waits(db, connect, schedulers, executions):
    for n in range(executions + 2):
        create(db, priority=n % 3)
    holder = connect(autocommit=False)
    held = {
        one(holder, "ff_claim_for_worker", lane_id="default", **worker(9))["execution_id"] for _ in range(2)
    }
    conns = [connect() for _ in range(schedulers)]
    for conn in conns:
        conn.execute("set lock_timeout = '5s'")  # a statement that waits for the holder fails

    def work(n):
        got = []
        while row := attempt(conns[n], "ff_claim_for_worker", lane_id="default", **worker(n)):
            got.append((row["execution_id"], row["grant_id"], n))
        return got

    got = [grant for batch in together(schedulers, work) for grant in batch]
    assert len({eid for eid, _, _ in got}) == len(got) == executions
    assert not held & {eid for eid, _, _ in got}
    holder.rollback()
    for _, grant_id, n in got:
        assert one(db, "ff_claim_from_grant", grant_id=grant_id, **worker(n))["outcome"] == "claimed"
    assert violations(db) == []


@pytest.mark.parametrize("kind", ["claim", "resume", "reclaim"])
def test_of_two_redeemers_of_one_grant_one_gets_the_lease(db, connect, clock, kind):
    clock.freeze()
    conns = [connect() for _ in range(4)]
    refusals = (
        "not_a_resumed_execution" if kind == "resume" else "execution_not_leaseable",
        "invalid_claim_grant",
    )
    for _ in range(5):
        eid = create(db)
        if kind != "claim":
            row = take(db, lease_ttl_ms=10)
        if kind == "resume":
            one(db, "ff_delay", handle=row["handle"], delay_ms=0)
        if kind == "reclaim":
            clock.advance(10)
            grant = one(db, "ff_issue_reclaim_grant", execution_id=eid, **worker(0))["grant_id"]
            name = "ff_reclaim_execution"
        else:
            grant = one(db, "ff_issue_claim_grant", execution_id=eid, **worker(0))["grant_id"]
            name = "ff_claim_execution" if kind == "claim" else "ff_claim_resumed_execution"

        def work(n, eid=eid, grant=grant, name=name):
            if n % 2:
                return attempt(conns[n], "ff_claim_from_grant", *refusals, grant_id=grant, **worker(0))
            return attempt(conns[n], name, *refusals, execution_id=eid, grant_id=grant, **worker(0))

        got = together(4, work)
        handles = [row["handle"] for row in got if isinstance(row, dict) and row["handle"]]
        assert len(handles) == 1, got
        assert execution(db, eid)["lease_epoch"] == (1 if kind == "claim" else 2)
        one(db, "ff_complete", handle=handles[0])
    assert table(db, "select * from ff_claim_grant") == []
    assert violations(db) == []


def test_a_grant_and_a_plain_claim_do_not_both_win(db, connect):
    conns = [connect() for _ in range(4)]
    for _ in range(15):
        eid = create(db)

        def work(n, eid=eid):
            if n % 2:
                return claim(conns[n], worker=f"w{n}")
            return attempt(
                conns[n],
                "ff_issue_claim_grant",
                "execution_not_eligible",
                "grant_already_exists",
                execution_id=eid,
                **worker(n),
            )

        got = together(4, work)
        leased = [row for n, row in enumerate(got) if n % 2 and row]
        granted = [row for n, row in enumerate(got) if n % 2 == 0 and isinstance(row, dict)]
        assert len(leased) + len(granted) == 1, got
        one(db, "ff_cancel_execution", execution_id=eid)
    assert violations(db) == []


@pytest.mark.own_session("has a setting of its own")
@pytest.mark.parametrize("taker", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
@pytest.mark.parametrize("capabilities", [[], ["a"]])
def test_work_that_was_granted_while_a_claim_looked_for_it_is_not_taken(db, connect, taker, capabilities):
    """
    The claim has begun to read: it is held up at a first, granted execution. Now the second is granted, and the
    lock on it is gone again before the claim gets there. The claim must see the grant all the same.
    """
    first = create(db, priority=9)
    second = create(db)
    for needed in capabilities:  # the worker covers several sets of the lane
        third = create(db, required_capabilities=[needed])
        one(db, "ff_issue_claim_grant", execution_id=third, capabilities=capabilities, **worker(1))
    one(db, "ff_issue_claim_grant", execution_id=first, grant_ttl_ms=60_000, **worker(1))
    (body,) = db.execute("select prosrc from pg_proc where proname = 'ff_now_ms'").fetchone()
    db.execute(
        f"""create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
            begin
                if current_setting('test.held', true) = 'on' then
                    perform set_config('test.held', 'off', false);
                    perform pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
                end if;
                return ({body});
            end $$"""
    )
    late, holder = connect(), connect()
    late.execute("set test.held = 'on'")
    holder.execute("select pg_advisory_lock(1)")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rows, late, taker, lane_id="default", capabilities=capabilities, **worker(2))
        wait_for_lock(db, late)
        grant = one(db, "ff_issue_claim_grant", execution_id=second, grant_ttl_ms=60_000, **worker(3))
        holder.execute("select pg_advisory_unlock(1)")
        assert answer.result(90) == []
    assert one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **worker(3))["outcome"] == "claimed"


@pytest.mark.parametrize("taker", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_claim_with_an_old_snapshot_does_not_take_what_was_granted(db, connect, taker, level):
    eid = create(db)
    old = connect(autocommit=False)
    old.execute(f"set transaction isolation level {level}")
    old.execute("select from ff_exec_core").fetchall()
    grant = one(db, "ff_issue_claim_grant", execution_id=eid, **worker(1))["grant_id"]
    with pytest.raises(psycopg.errors.SerializationFailure):
        rows(old, taker, lane_id="default", **worker(2))
    old.rollback()
    assert one(db, "ff_claim_from_grant", grant_id=grant, **worker(1))["outcome"] == "claimed"
    assert violations(db) == []


def test_a_renewal_before_the_end_beats_a_reclaim_and_after_it_does_not(db, connect, clock):
    """The clock stands at the last or the first millisecond: each of them has one possible winner."""
    clock.freeze()
    conns = [connect() for _ in range(4)]
    for n in range(16):
        eid = create(db)
        row = take(db, lease_ttl_ms=10)
        lapsed = n % 2
        clock.advance(9 + lapsed)

        def work(n, eid=eid, row=row):
            if n % 2:
                return attempt(conns[n], "ff_renew", "lease_expired", "stale_lease", handle=row["handle"])
            return attempt(
                conns[n], "ff_issue_reclaim_grant", "grant_already_exists", execution_id=eid, **worker(n)
            )

        got = together(4, work)
        granted = [row for row in got[::2] if isinstance(row, dict) and row["outcome"] == "granted"]
        renewed = [row for row in got[1::2] if isinstance(row, dict)]
        assert (len(granted), len(renewed)) == ((1, 0) if lapsed else (0, 2)), got
        one(db, "ff_cancel_execution", execution_id=eid)
    assert violations(db) == []


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_reclaim_that_waited_for_a_renewal_finds_the_lease_alive(db, connect, clock):
    clock.freeze()
    eid = create(db)
    row = take(db, lease_ttl_ms=100)
    clock.advance(99)
    holder, thief = connect(autocommit=False), connect()
    one(holder, "ff_renew", handle=row["handle"])
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(one, thief, "ff_issue_reclaim_grant", execution_id=eid, **worker(1))
        wait_for_lock(db, thief)
        clock.advance(1)
        holder.commit()
        assert answer.result(90)["outcome"] == "not_reclaimable"
    assert one(db, "ff_complete", handle=row["handle"])["outcome"] == "completed"


@pytest.mark.read_committed("the clock of the tests is a row, which a snapshot shows as it was")
def test_a_redemption_that_waited_past_the_end_of_its_grant_is_refused(db, connect, clock):
    clock.freeze()
    eid = create(db)
    grant = one(db, "ff_issue_claim_grant", execution_id=eid, grant_ttl_ms=100, **worker(1))["grant_id"]
    holder, late = connect(autocommit=False), connect()
    holder.execute("select from ff_exec_core for update")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(
            attempt, late, "ff_claim_from_grant", "claim_grant_expired", grant_id=grant, **worker(1)
        )
        wait_for_lock(db, late)
        clock.advance(100)
        holder.rollback()
        assert answer.result(90) == "claim_grant_expired"


def test_a_redemption_and_a_cancel_leave_one_sound_state(db, connect):
    conns = [connect() for _ in range(2)]
    seen = set()
    for n in range(12):
        eid = create(db)
        grant = one(db, "ff_issue_claim_grant", execution_id=eid, **worker(1))["grant_id"]

        def work(n, eid=eid, grant=grant, first=n % 2):
            if n == first:
                return one(conns[n], "ff_cancel_execution", execution_id=eid)["cancelled_from"]
            return attempt(
                conns[n],
                "ff_claim_from_grant",
                "execution_not_leaseable",
                "invalid_claim_grant",
                grant_id=grant,
                **worker(1),
            )

        seen.update(r for r in together(2, work) if isinstance(r, str))
        assert execution(db, eid)["public_state"] == "cancelled"
        assert events(db, eid).count("completion/cancelled") <= 1
    assert seen & {"waiting", "active"}
    assert violations(db) == []
