"""Releases: ff_release_budget, resets, and the spend of executions that have ended."""

import pytest

from tests.budgets.support import breaches, budget, ledger, release, report, spend, status, sweep, used
from tests.sql import create, one, refused, table, take, violations

A = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
B = "{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee08"


def test_a_release_gives_back_one_execution_once(db):
    budget(db)
    spend(db, A, {"tokens": 10, "calls": 1}, "a")
    spend(db, B, {"tokens": 20}, "b")
    report(db, 5)
    assert release(db, A) == ("released", 2)
    assert used(db) == {"calls": 0, "tokens": 25}
    assert release(db, A) == ("nothing_to_release", 0)
    assert release(db, B) == ("released", 1)
    assert used(db) == {"calls": 0, "tokens": 5}
    assert ledger(db) == []
    assert violations(db) == []


def test_a_release_refuses_what_it_does_not_know(db):
    budget(db)
    with refused("budget_not_found"):
        release(db, A, "no")
    with refused("invalid_execution_id"):
        release(db, "x", "no")
    with refused("invalid_input"):
        release(db, None)
    with refused("invalid_input"):
        release(db, A, None)
    assert release(db, A) == ("nothing_to_release", 0)


def test_a_release_after_a_reset_leaves_the_new_period_alone(db):
    budget(db)
    spend(db, A, 10, "1")
    one(db, "ff_reset_budget", budget_id="b")
    report(db, 30)
    assert release(db, A) == ("nothing_to_release", 0)
    spend(db, A, 7, "2")
    assert [row["reset_epoch"] for row in ledger(db)] == [1]
    assert release(db, A) == ("released", 1)
    assert used(db) == {"tokens": 30}


def test_rows_of_past_periods_are_forgotten_without_being_subtracted(db):
    budget(db)
    spend(db, A, 10, "1")
    db.execute("update ff_budget set reset_epoch = 1")  # as a trim that held the row would have left it
    spend(db, A, 7, "2")
    assert [row["reset_epoch"] for row in ledger(db)] == [0, 1]
    assert release(db, A) == ("released", 1)
    assert used(db) == {"tokens": 10}
    assert ledger(db) == []


def test_nothing_falls_below_zero(db):
    budget(db)
    spend(db, A, 10, "1")
    db.execute("update ff_budget_usage set current_value = 4")
    assert release(db, A) == ("released", 1)
    assert used(db) == {"tokens": 0}


def test_a_release_does_not_lift_a_breach(db):
    budget(db, on_hard_limit="block")
    spend(db, A, 100, "1")
    spend(db, B, 1, "2")
    release(db, A)
    assert status(db)["breached"] is True


def test_a_reset_starts_again_at_nothing(db, clock):
    now = clock.freeze()
    budget(db, on_hard_limit="cancel_all", reset_interval_ms=1000)
    spend(db, A, {"tokens": 60, "x": 1}, "1")
    report(db, 100)
    clock.advance(700)
    assert one(db, "ff_reset_budget", budget_id="b") == {"outcome": "reset", "next_reset_at_ms": now + 1700}
    found = status(db)
    assert used(db) == {"tokens": 0, "x": 0}
    assert (found["reset_epoch"], found["reset_count"], found["last_reset_at_ms"]) == (1, 1, now + 700)
    assert (found["last_breach_at_ms"], found["last_breach_dim"], found["breached"]) == (None, None, False)
    assert (found["breach_count"], found["soft_breach_count"]) == (1, 1)
    assert found["next_reset_at_ms"] == now + 1700
    assert (breaches(db), ledger(db)) == ([], [])
    assert violations(db) == []
    one(db, "ff_reset_budget", budget_id="b")
    assert status(db)["reset_count"] == 2


def test_a_reset_without_an_interval_names_no_next_one(db):
    budget(db)
    assert one(db, "ff_reset_budget", budget_id="b") == {"outcome": "reset", "next_reset_at_ms": None}
    with refused("budget_not_found"):
        one(db, "ff_reset_budget", budget_id="no")
    with refused("invalid_input"):
        one(db, "ff_reset_budget", budget_id=None)


def test_due_resets_stay_on_their_grid(db, clock):
    now = clock.freeze()
    budget(db, reset_interval_ms=1000)
    budget(db, "never")
    report(db, 10)
    clock.advance(999)
    assert sweep(db, "budget_resets") == (0, 0, False)
    clock.advance(1)
    assert sweep(db, "budget_resets") == (1, 0, False)
    assert (used(db), status(db)["next_reset_at_ms"]) == ({"tokens": 0}, now + 2000)
    assert sweep(db, "budget_resets") == (0, 0, False)
    clock.advance(3999)  # three were missed: one reset, the next on the grid
    assert sweep(db, "budget_resets") == (1, 0, False)
    assert (status(db)["next_reset_at_ms"], status(db)["reset_count"]) == (now + 5000, 2)
    clock.advance(1)
    assert sweep(db, "budget_resets") == (1, 0, False)
    assert status(db)["next_reset_at_ms"] == now + 6000
    assert status(db, "never")["reset_count"] == 0


def test_resets_come_in_batches_oldest_first(db, clock):
    clock.freeze()
    for n in (3, 1, 2):
        budget(db, f"b{n}", reset_interval_ms=n * 1000)
    clock.advance(5000)
    assert sweep(db, "budget_resets", limit=0) == (0, 0, False)
    assert sweep(db, "budget_resets", limit=2) == (2, 0, True)
    assert [status(db, f"b{n}")["reset_count"] for n in (1, 2, 3)] == [1, 1, 0]
    assert sweep(db, "budget_resets", limit=2) == (1, 0, False)


def test_sweeps_refuse_bad_limits(db):
    for name in ("budget_resets", "budget_breaches", "terminal_spend"):
        for limit in (None, -1, 100_001):
            with refused("invalid_input"):
                sweep(db, name, limit=limit)


def test_the_spend_of_what_has_ended_is_given_back_if_the_budget_says_so(db):
    budget(db, release_on_terminal=True)
    budget(db, "keeps")
    eid = create(db)
    dead = take(db)
    running = create(db)
    for n, budget_id in enumerate(("b", "keeps")):
        spend(db, eid, {"tokens": 10, "calls": 1}, f"1{n}", budget_id)
        spend(db, running, 20, f"2{n}", budget_id)
        spend(db, A, 5, f"3{n}", budget_id)  # never was an execution
    assert sweep(db, "terminal_spend") == (0, 0, False)
    one(db, "ff_fail", handle=dead["handle"], reason="x", category="y")
    assert sweep(db, "terminal_spend") == (1, 0, False)
    assert used(db) == {"calls": 0, "tokens": 25}
    assert used(db, "keeps") == {"calls": 1, "tokens": 35}
    assert sweep(db, "terminal_spend") == (0, 0, False)
    # A later spend for it holds nothing either.
    spend(db, eid, 3, "late")
    assert sweep(db, "terminal_spend") == (1, 0, False)
    assert used(db)["tokens"] == 25
    assert violations(db) == []


def test_a_dead_workers_reservation_ends_with_its_execution(db, clock):
    clock.freeze()
    budget(db, release_on_terminal=True)
    eid = create(db, policy={"max_reclaim_count": 0})
    take(db, lease_ttl_ms=1000)
    spend(db, eid, 90, "reserved")
    clock.advance(1000)
    assert sweep(db, "terminal_spend") == (0, 0, False)  # it may be reclaimed
    assert (
        one(db, "ff_issue_reclaim_grant", execution_id=eid, worker_id="v", worker_instance_id="v-1")[
            "grant_id"
        ]
        is None
    )
    assert sweep(db, "terminal_spend") == (1, 0, False)
    assert used(db) == {"tokens": 0}


def test_ended_spends_are_given_back_in_batches(db):
    budget(db, release_on_terminal=True)
    for n in range(3):
        spend(db, eid := create(db), 1, str(n))
        one(db, "ff_cancel_execution", execution_id=eid)
    assert sweep(db, "terminal_spend", limit=2) == (2, 0, True)
    assert sweep(db, "terminal_spend", limit=2) == (1, 0, False)
    assert used(db) == {"tokens": 0}


def test_retention_waits_for_what_is_to_be_given_back(db, clock):
    clock.freeze()
    budget(db, release_on_terminal=True)
    budget(db, "keeps")
    flow = one(db, "ff_create_flow")["flow_id"]
    solo, own, member = create(db), create(db, policy={"retention_ms": 5}), create(db, flow_id=flow)
    for eid in (solo, own, member):
        spend(db, eid, 1, f"b{eid}")
        spend(db, eid, 1, f"k{eid}", "keeps")
        one(db, "ff_cancel_execution", execution_id=eid)
    clock.advance(10)

    def trim():
        return one(db, "ff_trim_retention", retention_ms=10)["processed"]

    assert trim() == 0
    assert sweep(db, "terminal_spend") == (3, 0, False)
    assert trim() == 3
    assert table(db, "select from ff_exec_core") == []
    assert (used(db), used(db, "keeps")) == ({"tokens": 0}, {"tokens": 3})
    assert ledger(db) == []
    assert violations(db) == []


@pytest.mark.parametrize("in_a_flow", [False, True])
def test_retention_that_cannot_see_a_spend_leaves_its_execution_alone(db, connect, in_a_flow):
    budget(db, release_on_terminal=True)
    eid = create(db, flow_id=one(db, "ff_create_flow")["flow_id"] if in_a_flow else None)
    spend(db, eid, 1, "first")
    one(db, "ff_complete", handle=take(db)["handle"])
    release(db, eid)
    stale = connect(autocommit=False)
    stale.execute("set transaction isolation level repeatable read")
    stale.execute("select count(*) from ff_exec_core")
    spend(db, eid, 5, "second")
    one(stale, "ff_trim_retention", retention_ms=0)
    stale.commit()
    sweep(db, "terminal_spend")
    assert used(db) == {"tokens": 0}
    assert one(db, "ff_trim_retention", retention_ms=0)["processed"] == 1
    assert violations(db) == []
