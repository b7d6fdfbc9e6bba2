"""Children that are created while their parent ends, on real connections."""

import pytest

from tests.grants.test_grant_races import attempt, together
from tests.sql import create, one, refused, rows, table, take, violations

pytestmark = pytest.mark.modes


@pytest.fixture
def creator(connect):
    return connect(autocommit=False)


def child(conn, parent):
    return create(conn, "kids", parent_execution_id=parent)


def state(db, eid):
    return one(db, "ff_read_execution_state", execution_id=eid)["public_state"]


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_the_parent_renews_its_lease_while_the_creating_transaction_is_open(db, creator):
    parent = create(db)
    handle = take(db)["handle"]
    kid = child(creator, parent)
    db.execute("set lock_timeout = '2s'")
    one(db, "ff_renew", handle=handle)
    one(db, "ff_drain_sibling_cancels")
    one(db, "ff_renew", handle=handle)
    creator.commit()
    one(db, "ff_drain_sibling_cancels")
    one(db, "ff_renew", handle=handle)
    assert state(db, kid) == "waiting"
    assert violations(db) == []


def test_maintenance_does_not_keep_a_running_parent_locked(db, connect, creator):
    parent = create(db)
    handle = take(db)["handle"]
    child(db, parent)
    one(creator, "ff_drain_sibling_cancels")  # stays open
    db.execute("set lock_timeout = '2s'")
    one(db, "ff_renew", handle=handle)
    creator.rollback()


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_child_created_in_a_transaction_that_outlives_its_parent_is_cancelled(db, creator):
    parent = create(db)
    handle = take(db)["handle"]
    kid = child(creator, parent)
    one(db, "ff_fail", handle=handle, classification="permanent")
    rows(db, "ff_tick", force=True)
    creator.commit()
    assert state(db, kid) == "waiting"
    assert violations(db) == []
    running = take(db, "kids")["handle"]
    rows(db, "ff_tick", force=True)
    assert state(db, kid) == "cancelled"
    with refused("execution_not_active"):
        one(db, "ff_complete", handle=running)
    assert violations(db) == []
    assert table(db, "select * from ff_child_work") == []


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_check_waits_for_the_end_of_a_parent_that_is_under_way(db, connect, creator):
    """The parent's end does not see the child, and the check does not see the end."""
    parent = create(db)
    handle = take(db)["handle"]
    ender = connect(autocommit=False)
    one(ender, "ff_fail", handle=handle, classification="permanent")
    kid = child(creator, parent)
    creator.commit()
    one(db, "ff_drain_sibling_cancels")
    ender.commit()
    assert violations(db) == []
    one(db, "ff_drain_sibling_cancels")
    assert state(db, kid) == "cancelled"


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_an_end_in_an_older_snapshot_leaves_no_child_behind(db, connect, level):
    parent = create(db)
    handle = take(db)["handle"]
    ender = connect(autocommit=False)
    ender.execute(f"set transaction isolation level {level}")
    table(ender, "select 1")
    kid = child(db, parent)
    rows(db, "ff_tick", force=True)
    one(ender, "ff_fail", handle=handle, classification="permanent")
    ender.commit()
    assert violations(db) == []
    rows(db, "ff_tick", force=True)
    assert state(db, kid) == "cancelled"


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_replayed_child_of_a_parent_that_ends_meanwhile_is_cancelled(db, connect):
    parent = create(db)
    kid = child(db, parent)
    one(db, "ff_cancel_execution", execution_id=kid)
    operator = connect(autocommit=False)
    one(operator, "ff_replay_execution", execution_id=kid)
    one(db, "ff_cancel_execution", execution_id=parent)
    operator.commit()
    assert violations(db) == []
    rows(db, "ff_tick", force=True)
    assert state(db, kid) == "cancelled"
    assert violations(db) == []


def test_parents_end_and_children_come_at_the_same_time(db, connect):
    """Whatever the order, no child is left under a parent that was cancelled."""
    parents = [create(db) for _ in range(8)]
    conns = [connect() for _ in range(4)]

    def work(n):
        made = []
        for parent in parents if n % 2 else reversed(parents):
            if n == 0:
                one(conns[n], "ff_cancel_execution", execution_id=parent)
            elif n == 1:
                one(conns[n], "ff_drain_sibling_cancels")
            else:
                found = rows(conns[n], "ff_read_execution_state", execution_id=parent)
                if found[0]["public_state"] == "waiting":
                    answer = attempt(
                        conns[n],
                        "ff_create_execution",
                        "execution_already_terminal",
                        lane_id="kids",
                        parent_execution_id=parent,
                    )
                    made += [] if isinstance(answer, str) else [answer["execution_id"]]
        return made

    made = [eid for found in together(4, work) for eid in found]
    assert violations(db) == []
    rows(db, "ff_tick", force=True)
    assert {state(db, eid) for eid in made} <= {"cancelled"}
    assert table(db, "select * from ff_child_work") == []
    assert violations(db) == []
