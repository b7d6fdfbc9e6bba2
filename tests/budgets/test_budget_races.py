"""Budgets under real concurrency: no report is lost or counted twice, no strict limit is ever passed."""

import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.budgets.support import (
    attach,
    breaches,
    budget,
    ledger,
    release,
    report,
    spend,
    status,
    sweep,
    used,
)
from tests.sql import create, execution, one, table, take, violations, wait_for_lock

CLIENTS = 16
LEVELS = ["read committed", "repeatable read", "serializable"]


def together(count, work):
    """Runs work(n) in `count` threads that start at the same moment; the results in order."""
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def persistently(call, *args, **named):
    """Repeats the call after serialization failures. A deadlock is not retried: there must be none."""
    while True:
        try:
            return call(*args, **named)
        except psycopg.errors.SerializationFailure:
            continue


def at(connect, level):
    conn = connect()
    conn.execute(f"set default_transaction_isolation = '{level}'")
    return conn


def execution_id(n):
    return f"{{fp:{n}}}:018f3a2e-7b6c-7d1e-9f00-aabbccddee{n:02x}"


@pytest.mark.parametrize("level", LEVELS)
def test_sixteen_clients_fill_a_strict_budget_to_the_brim_and_no_further(db, connect, level):
    each = 30 if level == "read committed" else 8
    limit = CLIENTS * each * 3 // 4
    budget(db, hard_limits=[limit], soft_limits=[0], on_hard_limit="block")
    conns = [at(connect, level) for _ in range(CLIENTS)]

    def work(n):
        return [persistently(report, conns[n], 1, dedup_key=f"{n}-{k}")["outcome"] for k in range(each)]

    counted = Counter(outcome for outcomes in together(CLIENTS, work) for outcome in outcomes)
    assert counted == {"ok": limit, "hard_breach": CLIENTS * each - limit}
    assert used(db) == {"tokens": limit}
    assert status(db)["breach_count"] == CLIENTS * each - limit
    assert len(table(db, "select from ff_budget_usage_dedup")) == limit
    assert violations(db) == []


def test_workers_with_leases_fill_it_as_exactly(db, connect):
    budget(db, dimensions=["cents", "tokens"], hard_limits=[0, 50], soft_limits=[0, 0])
    for _ in range(8):
        create(db)
    handles = [take(db, lease_ttl_ms=10**6)["handle"] for _ in range(8)]
    conns = [connect() for _ in range(8)]

    def work(n):
        args = {"handle": handles[n], "budget_id": "b", "deltas": {"tokens": 1, "cents": 2}}
        return [one(conns[n], "ff_report_usage", **args)["applied"] for _ in range(10)]

    counted = Counter(applied for found in together(8, work) for applied in found)
    assert counted == {True: 50, False: 30}
    assert used(db) == {"cents": 100, "tokens": 50}


@pytest.mark.parametrize("level", LEVELS)
def test_one_key_from_many_clients_counts_once(db, connect, level):
    budget(db)
    conns = [at(connect, level) for _ in range(8)]
    got = together(
        8, lambda n: persistently(report, conns[n], {"tokens": 1, "x": 1}, dedup_key="k")["outcome"]
    )
    assert Counter(got) == {"ok": 1, "already_applied": 7}
    assert used(db) == {"tokens": 1, "x": 1}


@pytest.mark.parametrize("level", LEVELS)
def test_a_dimension_that_many_report_first_is_counted_in_full(db, connect, level):
    budget(db)
    conns = [at(connect, level) for _ in range(8)]
    together(8, lambda n: persistently(report, conns[n], {"new": 1, f"own{n}": 1}))
    assert used(db) == {"new": 8, "tokens": 0, **{f"own{n}": 1 for n in range(8)}}


def test_one_definition_from_many_clients_is_made_once(db, connect):
    conns = [connect() for _ in range(8)]
    got = together(8, lambda n: budget(conns[n])["outcome"])
    assert Counter(got) == {"created": 1, "already_satisfied": 7}


@pytest.mark.parametrize("level", LEVELS)
def test_spends_releases_resets_and_sweeps_at_once_stay_exact(db, connect, level):
    """No deadlock, no partial report; the usage equals the ledger and the last period."""
    rounds = 40 if level == "read committed" else 12
    budget(db, hard_limits=[0], soft_limits=[0], release_on_terminal=True)
    ended = [create(db) for _ in range(4)]
    for eid in ended:
        one(db, "ff_cancel_execution", execution_id=eid)
    conns = [at(connect, level) for _ in range(8)]

    def work(n):
        chance = random.Random(n)
        for k in range(rounds):
            spender = chance.choice([*ended, execution_id(1), execution_id(2)])
            what = chance.choice(["spend", "spend", "spend", "release", "reset", "sweep"])
            if what == "spend":
                persistently(spend, conns[n], spender, {"tokens": 3, "x": 1}, f"{n}-{k}")
            elif what == "release":
                persistently(release, conns[n], spender)
            elif what == "reset":
                persistently(one, conns[n], "ff_reset_budget", budget_id="b")
            else:
                persistently(sweep, conns[n], "terminal_spend")

    together(8, work)
    assert violations(db) == []
    for eid in (*ended, execution_id(1), execution_id(2)):
        release(db, eid)
    # Every spend of this period was noted, so nothing is left when all is given back.
    assert set(used(db).values()) <= {0}
    assert ledger(db) == []


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("change", ["reset", "report", "new dimension", "raised", "same key"])
def test_a_caller_with_an_old_snapshot_must_retry(db, connect, level, change):
    """A transaction that began before a change of the budget does not use its old snapshot."""
    budget(db)
    report(db, 60)
    late = connect(autocommit=False)
    late.execute(f"set transaction isolation level {level}")
    late.execute("select from ff_budget")  # its picture is taken here
    if change == "reset":
        one(db, "ff_reset_budget", budget_id="b")
    elif change == "report":
        report(db, 30)
    elif change == "new dimension":
        report(db, {"new": 1})
    elif change == "raised":
        one(db, "ff_update_budget", budget_id="b", dimension="tokens", hard_limit=200)
    else:
        report(db, {"other": 1}, dedup_key="k")
    query = """select ff_report_usage_admin('b', '{"tokens": 41}', 'k')"""
    if change == "new dimension":
        query = "select ff_reset_budget('b')"
    with pytest.raises(psycopg.errors.SerializationFailure):
        late.execute(query)
    late.rollback()


def test_a_report_is_wholly_before_or_wholly_after_a_reset(db, connect):
    """Two dimensions that are always reported together stay equal through resets."""
    budget(db, dimensions=["a", "z"], hard_limits=[0, 0], soft_limits=[0, 0])
    conns = [connect() for _ in range(6)]
    watcher = connect()
    seen = []

    def work(n):
        for _ in range(40):
            if n == 0:
                one(conns[n], "ff_reset_budget", budget_id="b")
            elif n == 1:
                seen.append(used(watcher))
            else:
                report(conns[n], {"a": 1, "z": 1})

    together(6, work)
    assert all(amounts["a"] == amounts["z"] for amounts in [*seen, used(db)])


def test_reports_wait_for_each_other_on_one_budget_only(db, connect):
    budget(db)
    budget(db, "c")
    holder, other = connect(autocommit=False), connect()
    report(holder, 1)
    assert report(other, 1, "c")["outcome"] == "ok"
    waiter = threading.Thread(target=report, args=(other, 99))
    waiter.start()
    wait_for_lock(db, other)
    holder.commit()
    waiter.join()
    assert used(db) == {"tokens": 100}


def test_sweeps_pass_over_what_is_busy(db, connect, clock):
    clock.freeze()
    budget(db, reset_interval_ms=1000, release_on_terminal=True, on_hard_limit="cancel_all")
    eid, free = create(db), create(db)
    gone = create(db)
    one(db, "ff_cancel_execution", execution_id=gone)
    spend(db, gone, 1, "k")
    for target in (eid, free):
        attach(db, execution_id=target)
    report(db, 200)
    clock.advance(1000)
    db.execute("set lock_timeout = '20s'")
    holder = connect(autocommit=False)
    holder.execute("select from ff_budget for update")
    assert sweep(db, "budget_resets") == (0, 0, False)
    assert sweep(db, "terminal_spend") == (0, 0, False)
    holder.rollback()
    holder.execute("select from ff_budget_breach for update")
    assert sweep(db, "budget_breaches") == (0, 0, False)
    assert sweep(db, "budget_resets") == (0, 0, False)  # another transaction cancels work attached to it
    holder.rollback()
    holder.execute("select from ff_execution where execution_id = %s for update", [eid[-36:]])
    assert sweep(db, "budget_breaches") == (1, 0, False)
    assert execution(db, free)["public_state"] == "cancelled"
    assert breaches(db) == ["b"]
    holder.rollback()
    assert sweep(db, "budget_breaches") == (1, 0, False)
    assert breaches(db) == []
    assert sweep(db, "terminal_spend") == (1, 0, False)
    assert sweep(db, "budget_resets") == (1, 0, False)
    assert violations(db) == []


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_breach_sweep_that_cannot_see_what_happened_must_try_again(db, connect, level):
    eid = create(db)
    budget(db, on_hard_limit="cancel_all")
    attach(db, execution_id=eid)
    report(db, 101)
    sweeper = connect(autocommit=False)
    sweeper.execute(f"set transaction isolation level {level}")
    sweeper.execute("select from ff_budget")
    one(db, "ff_change_priority", execution_id=eid, priority=5)
    with pytest.raises(psycopg.errors.SerializationFailure):
        sweep(sweeper, "budget_breaches")
    sweeper.rollback()
    assert sweep(sweeper, "budget_breaches") == (1, 0, False)


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("step", ["budget_resets", "terminal_spend"])
def test_a_sweep_that_cannot_see_a_report_must_try_again(db, connect, clock, step, level):
    clock.freeze()
    budget(db, reset_interval_ms=1000, release_on_terminal=True)
    spend(db, eid := create(db), 1, "k")
    one(db, "ff_cancel_execution", execution_id=eid)
    clock.advance(1000)
    sweeper = connect(autocommit=False)
    sweeper.execute(f"set transaction isolation level {level}")
    sweeper.execute("select from ff_budget")
    report(db, 5)
    with pytest.raises(psycopg.errors.SerializationFailure):
        one(sweeper, f"ff_sweep_{step}")
    sweeper.rollback()
    assert sweep(sweeper, step) == (1, 0, False)


def test_many_sweepers_end_each_execution_once(db, connect):
    budget(db, on_hard_limit="cancel_all")
    executions = [create(db) for _ in range(40)]
    for eid in executions:
        attach(db, execution_id=eid)
    report(db, 101)
    conns = [connect() for _ in range(4)]

    def work(n):
        done = 0
        while breaches(conns[n]):
            done += sweep(conns[n], "budget_breaches", limit=7)[0]
        return done

    assert sum(together(4, work)) == 40
    (completions,) = table(db, "select count(*) as n from ff_event where family = 'completion'")
    assert completions["n"] == 40
    assert violations(db) == []


def test_attaching_to_a_flow_and_to_its_members_at_once_loses_nothing(db, connect):
    flow = one(db, "ff_create_flow")["flow_id"]
    members = [create(db, flow_id=flow) for _ in range(4)]
    for n in range(8):
        budget(db, f"b{n}")
    conns = [connect() for _ in range(8)]

    def work(n):
        if n < 4:
            return attach(conns[n], f"b{n}", flow_id=flow)
        return [attach(conns[n], f"b{n}", execution_id=eid) for eid in members]

    together(8, work)
    for eid in members:
        assert sorted(execution(db, eid)["budget_ids"]) == [f"b{n}" for n in range(8)]
    assert violations(db) == []


KILLED = """
import sys, psycopg
conn = psycopg.connect(sys.argv[1])
conn.execute("select ff_record_spend('b', %s, '{\\"tokens\\": 40, \\"new\\": 1}', 'k')", [sys.argv[2]])
conn.execute("select ff_report_usage_admin('b', '{\\"tokens\\": 200}')")
print("spent", flush=True)
sys.stdin.read()
"""


def test_a_client_that_dies_in_mid_spend_leaves_nothing_half_done(db, dsn):
    budget(db, on_hard_limit="cancel_all")
    client = subprocess.Popen(
        [sys.executable, "-c", KILLED, dsn, execution_id(1)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert client.stdout.readline() == b"spent\n"
    client.send_signal(signal.SIGKILL)
    client.communicate()
    # Waits until the server has noticed: the budget is free again.
    assert spend(db, execution_id(1), {"tokens": 40, "new": 1}, "k")["outcome"] == "ok"
    assert used(db) == {"new": 1, "tokens": 40}
    assert sorted(row["delta_total"] for row in ledger(db)) == [1, 40]
    assert (status(db)["breach_count"], status(db)["breached"], breaches(db)) == (0, False, [])
    assert violations(db) == []
