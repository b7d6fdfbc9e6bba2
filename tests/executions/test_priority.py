"""ff_change_priority: the order of claims after it."""

import pytest

from tests.executions.states import (
    ACTIVE,
    RUNNABLE,
    TERMINAL,
    UNKNOWN,
    VECTORS,
    details,
    everything,
    reach,
    vector,
)
from tests.sql import create, events, execution, one, refused, take, violations


@pytest.mark.parametrize("state", [*RUNNABLE, *ACTIVE])
def test_the_priority_of_what_has_not_ended_can_be_changed(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    earlier = events(db, eid)
    clock.advance(1)
    assert one(db, "ff_change_priority", execution_id=eid, priority=7) == {
        "outcome": "changed",
        "old_priority": 0,
        "new_priority": 7,
    }
    stored = execution(db, eid)
    assert (stored["priority"], stored["last_mutation_at_ms"]) == (7, clock.now())
    assert vector(db, eid) == VECTORS[state]
    assert events(db, eid) == [*earlier, "operator/priority_changed"]
    assert details(db, eid, "priority_changed") == (None, {"old": 0, "new": 7})
    before = everything(db)
    assert one(db, "ff_change_priority", execution_id=eid, priority=7) == {
        "outcome": "unchanged",
        "old_priority": 7,
        "new_priority": 7,
    }
    assert everything(db) == before
    assert violations(db) == []


@pytest.mark.parametrize("state", TERMINAL)
def test_the_priority_of_what_has_ended_cannot(db, clock, state):
    clock.freeze()
    eid, _ = reach(db, clock, state)
    before = everything(db)
    for priority in (0, 5):
        with refused("execution_already_terminal") as refusal:
            one(db, "ff_change_priority", execution_id=eid, priority=priority)
        assert refusal.detail["public_state"] == VECTORS[state][-1]
    assert everything(db) == before


@pytest.mark.parametrize(
    ("asked", "stored"), [(-(2**31), 0), (-1, 0), (0, 0), (9000, 9000), (9001, 9000), (2**31 - 1, 9000)]
)
def test_a_priority_is_clamped(db, asked, stored):
    eid = create(db, priority=5)
    assert one(db, "ff_change_priority", execution_id=eid, priority=asked)["new_priority"] == stored
    again = one(db, "ff_change_priority", execution_id=eid, priority=asked)
    assert (again["outcome"], again["old_priority"]) == ("unchanged", stored)


def test_the_next_claim_goes_by_the_new_priority(db, clock):
    clock.freeze()
    first, second, third = (create(db) for _ in range(3))
    one(db, "ff_change_priority", execution_id=third, priority=2)
    one(db, "ff_change_priority", execution_id=second, priority=1)
    taken = [take(db) for _ in range(3)]
    assert [row["execution_id"] for row in taken] == [third, second, first]
    assert [row["priority"] for row in taken] == [2, 1, 0]
    one(db, "ff_change_priority", execution_id=first, priority=3)
    for row in taken:
        one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    assert [take(db)["execution_id"] for _ in range(3)] == [first, third, second]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"execution_id": None}, "invalid_input"),
        ({"execution_id": "x"}, "invalid_execution_id"),
        ({"execution_id": UNKNOWN}, "execution_not_found"),
        ({"priority": None}, "invalid_input"),
    ],
)
def test_bad_input_is_refused(db, args, kind):
    with refused(kind):
        one(db, "ff_change_priority", **{"execution_id": create(db), "priority": 1, **args})
