"""Locked rows do not hide the rows behind them: steps that work on flows, schedules and budgets.
(The other steps: test_sweeps.py.)"""

import pytest
from psycopg.types.json import Jsonb

from tests.budgets.support import attach, budget, report, spend, used
from tests.flows.graph import chain, fan_in, finish, flow, node, state, states
from tests.maintenance.support import EXECUTION, FLOW, sweep, uuid_of
from tests.sql import create, execution, one, rows, table, take, violations


@pytest.fixture
def holder(db, connect, clock):
    """A connection whose transaction holds what a test locks; a statement that waits for it fails."""
    clock.freeze()
    db.execute("set statement_timeout = '20s'")
    return connect(autocommit=False)


def test_dispatch_looks_behind_busy_flows(db, holder, clock):
    made = [chain(db, 2) for _ in range(6)]
    for flow_id, _ in made:
        holder.execute(FLOW, [flow_id])
    for _, (first, _) in made:
        finish(db, first)
        clock.advance(1)
    assert sweep(db, "dispatch_completions", limit=2) == (0, 0, False), "a driver would call again at once"
    holder.rollback()
    for flow_id, _ in made[:5]:
        holder.execute(FLOW, [flow_id])
    assert sweep(db, "dispatch_completions", limit=2)[:2] == (1, 0)
    assert states(db, [second for _, (_, second) in made]) == ["waiting_children"] * 5 + ["waiting"]
    assert sweep(db, "dispatch_completions", limit=2) == (0, 0, False)
    holder.rollback()
    assert sweep(db, "dispatch_completions")[:2] == (5, 0)
    assert violations(db) == []


def test_dispatch_that_stopped_at_its_bound_says_that_there_is_more(db, holder):
    keys = [f"child {n}" for n in range(1001)]
    made = rows(
        db,
        "ff_submit_flow",
        nodes=Jsonb([{"key": key, "lane_id": "default"} for key in ["root", *keys]]),
        edges=Jsonb([{"from": "root", "to": key} for key in keys]),
    )
    flow_id = made[0]["flow_id"]
    (root,) = [row["execution_id"] for row in made if row["node_key"] == "root"]
    holder.execute(FLOW, [flow_id])
    finish(db, root)
    holder.rollback()
    assert sweep(db, "dispatch_completions") == (0, 0, True), "of 1001 edges 1000 were done"
    assert sweep(db, "dispatch_completions") == (1, 0, False)


def test_cancels_of_siblings_look_behind_busy_flows_and_busy_members(db, holder, clock):
    made = [fan_in(db, 2, "any_of") for _ in range(6)]
    for _, (_, sibling), _ in made:
        holder.execute(EXECUTION, [uuid_of(sibling)])
    for _, (winner, _), _ in made:
        finish(db, winner)
        clock.advance(1)
    assert len(table(db, "select from ff_cancel_dispatch_outbox")) == 6
    assert sweep(db, "drain_sibling_cancels", limit=2) == (0, 0, False)
    holder.rollback()
    for flow_id, (_, sibling), _ in made[:5]:
        if flow_id in [made[0][0], made[1][0]]:
            holder.execute(FLOW, [flow_id])
        else:
            holder.execute(EXECUTION, [uuid_of(sibling)])
    assert sweep(db, "drain_sibling_cancels", limit=2)[:2] == (1, 0)
    assert state(db, made[5][1][1]) == "cancelled"
    holder.rollback()
    assert sweep(db, "drain_sibling_cancels")[:2] == (5, 0)
    assert violations(db) == []


def test_the_cancel_backlog_looks_behind_busy_flows_and_busy_members(db, holder, clock):
    made = []
    for _ in range(6):
        flow_id = flow(db)
        made.append((flow_id, node(db, flow_id)))
    # After all of them were made: the holder may have one snapshot for all that it does.
    for _, member in made:
        holder.execute(EXECUTION, [uuid_of(member)])
    for flow_id, _ in made:
        one(db, "ff_cancel_flow", flow_id=flow_id)
        clock.advance(1)
    clock.advance(60_000)
    assert sweep(db, "drain_cancel_backlog", limit=2) == (0, 0, False)
    holder.rollback()
    for flow_id, member in made[:5]:
        holder.execute(*((FLOW, [flow_id]) if flow_id == made[0][0] else (EXECUTION, [uuid_of(member)])))
    clock.advance(60_000)
    assert sweep(db, "drain_cancel_backlog", limit=2)[:2] == (1, 0)
    assert state(db, made[5][1]) == "cancelled"
    holder.rollback()
    clock.advance(60_000)
    assert sweep(db, "drain_cancel_backlog")[:2] == (5, 0)
    assert violations(db) == []


def test_projection_looks_behind_busy_flows(db, holder, clock):
    made = []
    for _ in range(6):
        made.append(flow(db))
        node(db, made[-1])
        clock.advance(1)
    for flow_id in made[:5]:
        holder.execute(FLOW, [flow_id])
    assert sweep(db, "project_flows", limit=2) == (1, 0, False)
    assert [row["flow_id"] for row in table(db, "select flow_id from ff_flow_summary")] == made[5:]


def test_schedules_look_behind_busy_ones(db, holder, clock):
    for n in range(6):
        one(db, "ff_create_schedule", schedule_id=f"s{n}", lane_id="default", interval_ms=60_000 + n)
    clock.advance(60_005)
    holder.execute("select from ff_schedule where schedule_id < 's5' for update")
    assert sweep(db, "fire_schedules", limit=2)[:2] == (1, 0)
    assert sweep(db, "fire_schedules", limit=2) == (0, 0, False)
    holder.rollback()
    assert sweep(db, "fire_schedules")[:2] == (5, 0)


def test_a_locked_breach_does_not_hide_the_next(db, holder, clock):
    """However many executions it has; and none that is busy hides one that is free."""
    for name in ("first", "second"):
        budget(db, name, on_hard_limit="cancel_all")
    made = {name: [create(db) for _ in range(30)] for name in ("first", "second")}
    for name, eids in made.items():
        for eid in eids:
            attach(db, name, execution_id=eid)
        report(db, 101, name)
        clock.advance(1)
    holder.execute("select from ff_budget_breach where budget_id = 'first' for update")
    for eid in made["second"][:8]:
        holder.execute(EXECUTION, [uuid_of(eid)])
    done = 0
    while (answer := sweep(db, "sweep_budget_breaches", limit=2))[0]:
        done += answer[0]
    assert done == 22
    assert {execution(db, eid)["public_state"] for eid in made["first"]} == {"waiting"}
    holder.rollback()
    assert sweep(db, "sweep_budget_breaches")[:2] == (38, 0)
    assert violations(db) == []


def test_a_locked_budget_does_not_hide_the_spend_of_others(db, holder):
    for name in ("first", "second"):
        budget(db, name, release_on_terminal=True)
    for n in range(20):
        eid = create(db)
        spend(db, eid, 1, f"key {n}", "second" if n == 19 else "first")
        one(db, "ff_complete", handle=take(db)["handle"])
    holder.execute("select from ff_budget where budget_id = 'first' for update")
    assert sweep(db, "sweep_terminal_spend", limit=2)[:2] == (1, 0)
    assert (used(db, "first"), used(db, "second")) == ({"tokens": 19}, {"tokens": 0})
    holder.rollback()
    assert sweep(db, "sweep_terminal_spend")[:2] == (19, 0)
    assert violations(db) == []


def test_what_is_spent_while_the_execution_ends_is_given_back(db, holder):
    """The sweep leaves an execution with an uncommitted spend of another transaction."""
    budget(db, release_on_terminal=True)
    eid = create(db)
    spend(db, eid, 1, "before")
    handle = take(db)["handle"]
    spend(holder, eid, 2, "during")
    db.execute("set lock_timeout = '10s'")
    holder.commit()
    one(db, "ff_complete", handle=handle)
    spend(holder, eid, 4, "after")
    assert sweep(db, "sweep_terminal_spend") == (0, 0, False)
    holder.commit()
    assert sweep(db, "sweep_terminal_spend") == (1, 0, False)
    assert used(db) == {"tokens": 0}
    spend(db, eid, 8, "late")
    assert sweep(db, "sweep_terminal_spend") == (1, 0, False)
    assert used(db) == {"tokens": 0}
    assert violations(db) == []


def test_what_was_spent_before_the_execution_was_there_is_given_back(db, clock):
    clock.freeze()
    budget(db, release_on_terminal=True)
    eid = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    spend(db, eid, 5, "reserve")
    assert sweep(db, "sweep_terminal_spend") == (0, 0, False)
    create(db, execution_id=eid)
    assert sweep(db, "sweep_terminal_spend") == (0, 0, False)
    spend(db, eid, 5, "more")
    one(db, "ff_complete", handle=take(db)["handle"])
    assert sweep(db, "sweep_terminal_spend") == (1, 0, False)
    assert used(db) == {"tokens": 0}
    assert table(db, "select from ff_exec_core where spends") == []
    assert violations(db) == []


def test_what_was_given_back_by_hand_is_not_looked_at_again(db):
    budget(db, release_on_terminal=True)
    budget(db, "kept")
    eid = create(db)
    spend(db, eid, 5, "k")
    spend(db, eid, 5, "k", "kept")
    one(db, "ff_complete", handle=take(db)["handle"])
    one(db, "ff_release_budget", budget_id="b", execution_id=eid)
    assert sweep(db, "sweep_terminal_spend") == (0, 0, False)
    assert table(db, "select from ff_exec_core where spends") == []
