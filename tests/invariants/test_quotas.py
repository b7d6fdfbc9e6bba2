"""ff_check_invariants on admission: it finds each violation, and nothing else."""

import pytest

from tests.quotas.support import ask, limits, many, policy, under
from tests.sql import create, one, rows, take, violations


def broken(db):
    return {row["invariant"] for row in violations(db)}


def fresh(db, clock):
    take(db)
    take(db)


def resumed(db, clock):
    for row in (take(db), take(db)):
        one(db, "ff_delay", handle=row["handle"], delay_ms=1)
    clock.advance(1)
    fresh(db, clock)


def reclaimed(db, clock):
    take(db, lease_ttl_ms=1)
    take(db, lease_ttl_ms=1)
    clock.advance(1)
    fresh(db, clock)


@pytest.mark.parametrize("start", [fresh, resumed, reclaimed])
def test_one_too_many_at_once_is_found_however_they_came_to_run(db, clock, start):
    clock.freeze()
    policy(db, at_once=2)
    many(db, 2, "q")
    start(db, clock)
    assert broken(db) == set()
    db.execute("update ff_quota_policy set max_concurrent = 1")
    assert broken(db) == {"concurrency_cap"}
    clock.advance(3_600_000)
    assert broken(db) == set()


def test_lower_limits_are_no_fault_of_those_who_run(db, clock):
    clock.freeze()
    policy(db, at_once=2)
    many(db, 2, "q")
    clock.advance(1)
    fresh(db, clock)
    clock.advance(1)
    one(db, "ff_update_quota_policy", quota_policy_id="q", max_concurrent=1)
    assert broken(db) == set()


def test_an_operator_of_any_name_may_pass_a_cap(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    eid = under(db)
    worker = {"worker_id": "w", "worker_instance_id": "w-1"}
    one(db, "ff_issue_claim_grant", execution_id=eid, grant_ttl_ms=1, **worker)
    clock.advance(1)  # unused: the start is counted, the slot is free
    under(db, priority=1)
    take(db)
    alice = {"worker_id": "alice", "worker_instance_id": "alice-1"}
    row = one(db, "ff_issue_grant_and_claim", execution_id=eid, **alice)
    assert limits(db)["active_concurrency"] == 2
    assert broken(db) == set()
    one(db, "ff_renew", handle=row["handle"])
    assert broken(db) == set()


def test_an_operator_of_any_name_may_start_on_a_breached_budget(db, clock):
    clock.freeze()
    limit = {"dimensions": ["d"], "hard_limits": [1], "soft_limits": [0], "on_hard_limit": "block"}
    one(db, "ff_create_budget", budget_id="b", **limit)
    eid = create(db, policy={"budget_ids": ["b"]})
    one(db, "ff_report_usage_admin", budget_id="b", deltas={"d": 2})
    clock.advance(5_000)
    alice = {"worker_id": "alice", "worker_instance_id": "alice-1"}
    rows(db, "ff_issue_grant_and_claim", execution_id=eid, **alice)
    assert broken(db) == set()


def to_itself(db, eid, flow):
    one(db, "ff_attach_quota", quota_policy_id="q", execution_id=eid)


def to_its_flow(db, eid, flow):
    one(db, "ff_add_execution_to_flow", flow_id=flow, execution_id=eid)
    one(db, "ff_attach_quota", quota_policy_id="q", flow_id=flow)


def by_its_flow(db, eid, flow):
    one(db, "ff_attach_quota", quota_policy_id="q", flow_id=flow)
    one(db, "ff_add_execution_to_flow", flow_id=flow, execution_id=eid)


@pytest.mark.parametrize("attach", [to_itself, to_its_flow, by_its_flow])
def test_what_was_attached_while_it_ran_may_be_one_too_many(db, clock, attach):
    clock.freeze()
    policy(db, at_once=1)
    flow = one(db, "ff_create_flow")["flow_id"]
    eid = f"{{fp:{flow.bytes[-1]}}}:{'018f3a2e-7b6c-7d1e-9f00-aabbccddee'}{flow.hex[-2:]}"
    create(db, execution_id=eid)
    ask(db, eid, hold_ms=1)
    clock.advance(1)  # the slot is free, the start stays counted
    assert take(db)["execution_id"] == eid
    under(db)
    take(db)
    attach(db, eid, flow)
    assert limits(db)["active_concurrency"] == 2
    assert broken(db) == set()


def test_one_start_too_many_in_a_window_is_found(db, clock):
    now = clock.freeze()
    policy(db, per_window=3, window=10)
    for at in (0, 4_000, 9_999, 10_000, 14_000):
        clock.set(now + at)
        under(db)
        take(db)
    assert broken(db) == set()
    db.execute("update ff_quota_policy set max_requests_per_window = 2")
    assert broken(db) == {"window_limit"}


def test_a_window_of_many_starts_is_evaluated_in_one_pass(db, clock):
    clock.freeze()
    policy(db, per_window=40_000, window=86_400)
    db.execute(
        """insert into ff_quota_window (quota_policy_id, execution_id, attempt_index, admitted_at_ms)
           select 'q', gen_random_uuid(), 0, ff_now_ms() + n from generate_series(1, 40000) n"""
    )
    clock.advance(40_000)
    db.execute("set local statement_timeout = '60s'")  # pair by pair, it would take minutes
    assert broken(db) == set()
    db.execute("update ff_quota_policy set max_requests_per_window = 39999")
    assert broken(db) == {"window_limit"}
