"""Steps that work on flows and schedules: a row that says what is to be done, and cannot itself be changed, is put off
like any other. (The other steps: test_sweeps.py.)"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.flows.graph import chain, fan_in, finish, flow, node, state
from tests.maintenance.support import EXECUTION, FLOW, Due, errors, poison, repair, sweep, uuid_of
from tests.sql import one, table, violations

Moved = list[Callable[[], bool]]


@pytest.fixture
def holder(db, connect, clock):
    clock.freeze()
    return connect(autocommit=False)


def work_row(relation: str, column: str, value: Any) -> Due:
    return Due(0, relation, column, str(value), "", lambda: False)


def ends(db, holder, clock) -> tuple[Due, Moved]:
    made = []
    for _ in range(3):
        flow_id, (first, second) = chain(db, 2)
        holder.execute(FLOW, [flow_id])
        finish(db, first)
        clock.advance(1)
        made.append((flow_id, second))
    holder.rollback()
    return work_row("ff_flow_dispatch", "flow_id", made[0][0]), [
        lambda eid=eid: state(db, eid) == "waiting" for _, eid in made
    ]


def siblings(db, holder, clock) -> tuple[Due, Moved]:
    made = []
    for _ in range(3):
        flow_id, (winner, sibling), _ = fan_in(db, 2, "any_of")
        holder.execute(EXECUTION, [uuid_of(sibling)])
        finish(db, winner)
        clock.advance(1)
        made.append((flow_id, sibling))
    holder.rollback()
    return work_row("ff_cancel_dispatch_outbox", "flow_id", made[0][0]), [
        lambda eid=eid: state(db, eid) == "cancelled" for _, eid in made
    ]


def cancelled(relation: str) -> Callable[..., tuple[Due, Moved]]:
    def make(db, holder, clock) -> tuple[Due, Moved]:
        made = []
        for _ in range(3):
            flow_id = flow(db)
            made.append((flow_id, node(db, flow_id)))
            one(db, "ff_cancel_flow_header", flow_id=flow_id, grace_ms=10)
            clock.advance(1)
        clock.advance(10)
        return work_row(relation, "flow_id", made[0][0]), [
            lambda eid=eid: state(db, eid) == "cancelled" for _, eid in made
        ]

    return make


def unprojected(db, holder, clock) -> tuple[Due, Moved]:
    made = []
    for _ in range(3):
        made.append(flow(db))
        node(db, made[-1])
        clock.advance(1)
    query = "select from ff_flow_summary where flow_id = %s"
    return work_row("ff_flow_core", "flow_id", made[0]), [
        lambda flow_id=flow_id: bool(table(db, query, flow_id)) for flow_id in made
    ]


def schedules(db, holder, clock) -> tuple[Due, Moved]:
    for n in range(3):
        one(db, "ff_create_schedule", schedule_id=f"s{n}", lane_id=f"lane {n}", interval_ms=10**9 + n)
    clock.advance(10**9 + 2)
    query = "select from ff_exec_core where lane_id = %s"
    return work_row("ff_schedule", "schedule_id", "s0"), [
        lambda n=n: bool(table(db, query, f"lane {n}")) for n in range(3)
    ]


every_step = pytest.mark.parametrize(
    ("name", "make"),
    [
        ("dispatch_completions", ends),
        ("drain_sibling_cancels", siblings),
        ("drain_cancel_backlog", cancelled("ff_cancel_backlog")),
        ("drain_cancel_backlog", cancelled("ff_cancel_backlog_member")),
        ("drain_cancel_backlog", cancelled("ff_flow_core")),
        ("project_flows", unprojected),
        ("fire_schedules", schedules),
    ],
)


@every_step
def test_what_cannot_be_changed_is_put_off_and_the_others_move_on(db, holder, clock, name, make):
    bad, moved = make(db, holder, clock)
    poison(db, bad)
    assert sweep(db, name)[1] == 1
    assert [done() for done in moved] == [False, True, True]
    (noted,) = errors(db, name).values()
    assert (noted["attempts"], noted["last_error"]) == (1, f"P0001: poison {bad.value}")
    assert sweep(db, name) == (0, 0, False), "a driver would call again at once"
    repair(db, bad)
    clock.advance(6000)
    assert sweep(db, name)[1] == 0
    assert [done() for done in moved] == [True] * 3
    assert errors(db, name) == {}
    assert violations(db) == []


@every_step
def test_what_cannot_be_changed_never_heads_the_batch_again(db, holder, clock, name, make):
    bad, moved = make(db, holder, clock)
    poison(db, bad)
    said = [sweep(db, name, limit=1) for _ in range(5)]
    assert [failed for _, failed, _ in said] == [1, 0, 0, 0, 0]
    assert said[-1] == (0, 0, False)
    assert [done() for done in moved] == [False, True, True]
