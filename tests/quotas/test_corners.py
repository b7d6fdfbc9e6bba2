"""Corners of admission."""

import pytest

from tests.quotas.support import HOUR, ask, limits, many, policy, state, sweep, under
from tests.sql import claim, create, one, rows, take, violations


def batch(db, limit=10, **args):
    return rows(
        db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1", limit=limit, **args
    )


def test_a_slot_that_stands_behind_in_a_batch_is_taken_from_the_start(db):
    policy(db, at_once=1)
    first, second = many(db, 2, "q")
    assert ask(db, second)["outcome"] == "admitted"
    assert [row["execution_id"] for row in batch(db)] == [second]
    assert limits(db)["active_concurrency"] == 1
    assert state(db, first) == "blocked_by_quota"
    assert violations(db) == []


def test_a_grant_keeps_a_slot_that_would_have_ended_before_it(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    eid = under(db)
    ask(db, eid, hold_ms=100)
    granted = one(
        db,
        "ff_issue_claim_grant",
        execution_id=eid,
        worker_id="w",
        worker_instance_id="w-1",
        grant_ttl_ms=5000,
    )
    clock.advance(1000)
    other = under(db)
    assert ask(db, other)["outcome"] == "concurrency_exceeded"
    (held,) = rows(
        db,
        "ff_claim_execution",
        execution_id=eid,
        grant_id=granted["grant_id"],
        worker_id="w",
        worker_instance_id="w-1",
    )
    assert held["execution_id"] == eid


def fill(db, count, **args):
    """So many ready executions under the policy."""
    for start in range(0, count, 500):
        many(db, min(500, count - start), "q", **args)


def block_all(db, lane, not_before=None):
    db.execute(
        """select ff_block_execution_for_admission(ff__wire_id(c.partition_key, c.execution_id), 'waiting_for_quota',
                                                   null, %s)
             from ff_exec_core c where c.lane_id = %s""",
        [not_before, lane],
    )


def test_an_empty_claim_finds_its_own_behind_many_rows_of_another_lane(db):
    policy(db, at_once=1)
    fill(db, 1100, lane_id="many")
    block_all(db, "many")
    mine = under(db, lane="mine")
    block_all(db, "mine")
    assert take(db, "mine")["execution_id"] == mine
    assert violations(db) == []


def test_what_is_not_due_hides_nothing_that_is(db, clock):
    clock.freeze()
    policy(db, per_window=1)
    fill(db, 1100, lane_id="many")
    block_all(db, "many", clock.now() + 10**9)
    clock.advance(1)
    due = under(db)
    block_all(db, "default", clock.now() + 10)
    assert claim(db) is None
    clock.advance(10)
    assert sweep(db) == 1
    assert take(db)["execution_id"] == due


def test_members_of_a_cancelled_flow_are_not_parked(db):
    policy(db, at_once=1)
    under(db)
    take(db)
    flow = one(db, "ff_create_flow")["flow_id"]
    member = under(db, flow_id=flow)
    solo = under(db, priority=5)
    one(db, "ff_cancel_flow_header", flow_id=flow, policy="cancel_all")
    assert claim(db) is None
    assert (state(db, solo), state(db, member)) == ("blocked_by_quota", "eligible_now")


@pytest.mark.parametrize("limit", ["quota", "budget"])
def test_what_is_limited_no_more_is_claimed_as_other_work(db, limit):
    policy(db, at_once=1)
    one(db, "ff_create_budget", budget_id="b", dimensions=["d"], hard_limits=[1], soft_limits=[0])
    eid = create(db, policy={"quota_policy_id": "q"} if limit == "quota" else {"budget_ids": ["b"]})
    one(db, f"ff_detach_{limit}", execution_id=eid, **({"budget_id": "b"} if limit == "budget" else {}))
    assert take(db)["execution_id"] == eid
    assert violations(db) == []


def grants(db):
    return rows(db, "ff_claim_for_worker", lane_id="default", worker_id="w", worker_instance_id="w-1")


@pytest.mark.parametrize("search", [claim, batch, grants])
def test_a_search_ends_though_crashed_work_holds_a_slot_of_another_full_policy(db, clock, search):
    clock.freeze()
    policy(db, "its own", at_once=1)
    policy(db, "another", at_once=1)
    crashed = under(db, "its own")
    take(db, lease_ttl_ms=1000)
    clock.advance(1000)
    under(db, "its own", lane="elsewhere")
    take(db, "elsewhere")
    assert ask(db, crashed, "another", hold_ms=HOUR)["outcome"] == "admitted"
    under(db, "another", priority=1)
    db.execute("set local statement_timeout = '20s'")
    assert not search(db)
    assert violations(db) == []


def test_a_batch_ends_where_a_policy_is_busy_whatever_slots_are_held_under_it(db, connect):
    for name in "abc":
        policy(db, name, at_once=1)
    under(db, "c", lane="elsewhere")
    take(db, "elsewhere")
    first = under(db, "b", priority=9)
    refused = under(db, "c", priority=8)
    held = under(db, "a")
    assert ask(db, held, "a", hold_ms=HOUR)["outcome"] == "admitted"
    with connect(autocommit=False) as other:
        # It may be waiting for what the batch holds, which PostgreSQL does not detect as a deadlock.
        one(other, "ff_update_quota_policy", quota_policy_id="a")
        with db.transaction():
            db.execute("set local statement_timeout = '20s'")
            assert [row["execution_id"] for row in batch(db, 2)] == [first]
    assert (state(db, refused), state(db, held)) == ("blocked_by_quota", "eligible_now")
    assert [row["execution_id"] for row in batch(db, 2)] == [held]
    assert violations(db) == []
