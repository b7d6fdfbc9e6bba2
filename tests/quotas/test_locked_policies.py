"""A quota policy whose row another transaction has locked has no room now: a claim never waits for it."""

import pytest

from tests.quotas.support import ask, budget, limits, policy, state, under
from tests.sql import claim, create, one, refused, rows, take, violations

WORKER = {"worker_id": "w", "worker_instance_id": "w-1"}


@pytest.fixture
def holder(db, connect):
    """A session with an open transaction; every call beside it fails if it waits for a lock."""
    db.execute("set lock_timeout = '2s'")
    return connect(autocommit=False)


def claimed_under(holder):
    under(holder, lane="elsewhere")
    take(holder, "elsewhere")


def updated(holder):
    one(holder, "ff_update_quota_policy", quota_policy_id="q", max_concurrent=9)


def asked(holder):
    ask(holder, create(holder, "elsewhere"))


@pytest.mark.parametrize("lock", [claimed_under, updated, asked])
@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
def test_a_claim_goes_on_with_other_work(db, holder, function, lock):
    policy(db, at_once=10)
    eid = under(db, priority=9)
    other = create(db)
    lock(holder)
    assert [r["execution_id"] for r in rows(db, function, lane_id="default", **WORKER)] == [other]
    assert rows(db, function, lane_id="default", **WORKER) == []
    assert state(db, eid) == "eligible_now"
    holder.commit()
    assert [r["execution_id"] for r in rows(db, function, lane_id="default", **WORKER)] == [eid]
    assert violations(db) == []


def test_a_batch_takes_the_work_of_the_policies_that_are_free(db, holder):
    for name in "abc":
        policy(db, name, at_once=10)
    locked = [under(db, name, priority=9) for name in "ac"]
    free = [under(db, "b"), create(db)]
    for name in "ca":
        one(holder, "ff_update_quota_policy", quota_policy_id=name, max_concurrent=9)
    batch = {"lane_id": "default", "limit": 10, **WORKER}
    assert {r["execution_id"] for r in rows(db, "ff_claim_many", **batch)} == set(free)
    holder.rollback()
    assert {r["execution_id"] for r in rows(db, "ff_claim_many", **batch)} == set(locked)
    assert violations(db) == []


def test_a_slot_that_is_held_for_an_execution_does_not_make_its_claim_wait(db, holder):
    policy(db, at_once=10)
    eid = under(db)
    ask(db, eid)
    updated(holder)
    assert claim(db) is None
    assert rows(db, "ff_claim_many", lane_id="default", limit=5, **WORKER) == []
    holder.rollback()
    assert take(db)["execution_id"] == eid
    assert limits(db)["active_concurrency"] == 1


def test_a_policy_without_limits_is_never_locked(db, holder):
    policy(db)
    eid = under(db)
    updated(holder)
    assert take(db)["execution_id"] == eid


def test_crashed_work_under_a_locked_policy_stays_claimable(db, holder, clock):
    clock.freeze()
    policy(db, at_once=10)
    eid = under(db)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    updated(holder)
    assert claim(db) is None
    holder.rollback()
    assert take(db)["execution_id"] == eid
    assert violations(db) == []


def denied(db, function, **args):
    with refused("concurrency_limit_exceeded") as refusal:
        one(db, function, **WORKER, **args)
    assert refusal.detail["quota_policy_id"] == "q"
    assert refusal.detail["retry_after_ms"] is None
    assert "locked" in (refusal.error.diag.message_primary or "")


def test_targeted_claims_and_grants_answer_that_there_is_no_slot(db, holder, clock):
    clock.freeze()
    policy(db, at_once=10)
    fresh, paused, crashed = (under(db) for _ in range(3))
    for eid in (paused, crashed):
        grant = one(db, "ff_issue_claim_grant", execution_id=eid, **WORKER)
        row = one(
            db, "ff_claim_execution", execution_id=eid, grant_id=grant["grant_id"], lease_ttl_ms=10, **WORKER
        )
        if eid == paused:
            one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    clock.advance(10)
    ungranted = under(db)
    grants = {
        eid: one(db, function, execution_id=eid, **WORKER)["grant_id"]
        for eid, function in (
            (fresh, "ff_issue_claim_grant"),
            (paused, "ff_issue_claim_grant"),
            (crashed, "ff_issue_reclaim_grant"),
        )
    }
    updated(holder)
    denied(db, "ff_issue_claim_grant", execution_id=ungranted)
    denied(db, "ff_claim_execution", execution_id=fresh, grant_id=grants[fresh])
    denied(db, "ff_claim_resumed_execution", execution_id=paused, grant_id=grants[paused])
    denied(db, "ff_claim_from_resume_grant", grant_id=grants[paused])
    denied(db, "ff_reclaim_execution", execution_id=crashed, grant_id=grants[crashed])
    for grant_id in grants.values():
        denied(db, "ff_claim_from_grant", grant_id=grant_id)
    holder.rollback()
    for grant_id in grants.values():
        assert one(db, "ff_claim_from_grant", grant_id=grant_id, **WORKER)["outcome"] == "claimed"
    assert violations(db) == []


def test_a_reclaim_grant_answers_that_there_is_no_slot_and_leaves_the_work_as_it_is(db, holder, clock):
    clock.freeze()
    policy(db, at_once=10)
    eid = under(db)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    updated(holder)
    denied(db, "ff_issue_reclaim_grant", execution_id=eid)
    holder.rollback()
    assert one(db, "ff_issue_reclaim_grant", execution_id=eid, **WORKER)["outcome"] == "granted"


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
def test_a_claim_in_an_open_transaction_leaves_the_work_of_a_locked_policy_to_others(
    db, connect, holder, function
):
    policy(db, at_once=10)
    eids = [under(db, priority=9) for _ in range(3)]
    other = create(db)
    updated(holder)
    caller = connect(autocommit=False)
    assert [r["execution_id"] for r in rows(caller, function, lane_id="default", **WORKER)] == [other]
    holder.commit()
    got = rows(db, "ff_claim_many", lane_id="default", limit=10, **WORKER)
    assert {r["execution_id"] for r in got} == set(eids)
    caller.commit()
    assert violations(db) == []


def test_what_is_due_is_claimed_beside_a_locked_policy(db, holder, clock):
    clock.freeze()
    policy(db, at_once=10)
    under(db, priority=9)
    first, second = create(db, delay_ms=10), create(db, delay_ms=10)
    updated(holder)
    clock.advance(10)
    assert take(db)["execution_id"] in (first, second)
    assert len(rows(db, "ff_claim_many", lane_id="default", limit=10, **WORKER)) == 1


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_work_behind_ten_thousand_of_a_locked_policy_is_found(db, holder, function):
    for name in "pqr":
        policy(db, name, at_once=10)
    for _ in range(11):
        rows(
            db,
            "ff_create_executions",
            lane_id="default",
            payloads=[b""] * 1000,
            priorities=[9] * 1000,
            policy={"quota_policy_id": "q"},
        )
    budget(db, "b")
    behind = [
        under(db, "r", priority=4),
        under(db, "p", priority=3),
        create(db, priority=2, policy={"budget_ids": ["b"]}),
    ]
    updated(holder)
    got = [r for _ in behind for r in rows(db, function, lane_id="default", **WORKER)]
    assert [r["execution_id"] for r in got] == behind
    assert claim(db) is None
