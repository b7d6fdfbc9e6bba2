"""Many rows due at once: one call processes some of each kind, and a bounded number in total."""

import pytest

from tests.sql import claim, create, execution, one, rows, table, take, violations

WORKER = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w-1"}


def test_leases_that_were_renewed_do_not_hide_what_is_due(db, clock):
    clock.freeze()
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 400)
    got = rows(db, "ff_claim_many", limit=400, lease_ttl_ms=500, **WORKER)
    rows(db, "ff_renew_many", handles=[r["handle"] for r in got], lease_ttl_ms=600_000)
    eid = create(db, delay_ms=600)
    clock.advance(1200)
    assert take(db)["execution_id"] == eid
    assert violations(db) == []


@pytest.mark.parametrize("policy", [{}, {"quota_policy_id": "roomy"}])
@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_delays_that_ended_do_not_hide_a_lapsed_lease(db, clock, policy, function):
    clock.freeze()
    one(db, "ff_create_quota_policy", quota_policy_id="roomy", max_concurrent=1000)
    urgent = create(db, priority=100, policy=policy)
    take(db, lease_ttl_ms=400)
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 400, delay_ms=100, policy=policy)
    clock.advance(800)
    assert rows(db, function, **WORKER)[0]["execution_id"] == urgent
    held = len(rows(db, "ff_list_executions", public_state="active", limit=500))
    left = rows(db, "ff_list_executions", public_state="delayed", limit=500)
    assert len(left) == 401 - held  # a claim changes what it hands out, and nothing else


def test_a_claim_of_many_applies_as_many_overdue_transitions_as_a_claim(db, clock):
    clock.freeze()
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 64, deadline_at_ms=clock.now() + 10)
    clock.advance(10)
    eid = create(db)
    (row,) = rows(db, "ff_claim_many", limit=1, **WORKER)
    assert row["execution_id"] == eid
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 70, deadline_at_ms=clock.now() + 10)
    clock.advance(10)
    assert rows(db, "ff_claim_many", limit=5, **WORKER) == []
    waiting = "select count(*) as n from ff_exec_core where public_state = 'waiting'"
    assert table(db, waiting)[0]["n"] == 6
    assert claim(db) is None
    assert table(db, waiting)[0]["n"] == 0
    assert execution(db, eid)["public_state"] == "active"


def test_a_claim_of_many_locks_no_more_rows_than_it_changes(db, connect, clock):
    clock.freeze()
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 200, deadline_at_ms=clock.now() + 10)
    clock.advance(10)
    last = create(db)
    other = connect(autocommit=False)
    assert [r["execution_id"] for r in rows(other, "ff_claim_many", limit=201, **WORKER)] == [last]
    free = "select count(*) as n from (select from ff_execution for no key update skip locked) x"
    assert table(db, free)[0]["n"] == 200 - 64
    other.rollback()


def test_what_ended_first_is_trimmed_first_whatever_its_retention(db, clock):
    clock.freeze()
    own, plain = create(db, policy={"retention_ms": 0}), create(db)
    for eid in (own, plain):
        one(db, "ff_cancel_execution", execution_id=eid)
        clock.advance(1)
    one(db, "ff_trim_retention", retention_ms=0, limit=1)
    assert [r["execution_id"] for r in rows(db, "ff_list_executions")] == [plain]


@pytest.mark.parametrize("policy", [{}, {"quota_policy_id": "roomy"}])
@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many", "ff_claim_for_worker"])
def test_due_rows_that_others_hold_hide_no_free_ones(db, connect, clock, policy, function):
    clock.freeze()
    one(db, "ff_create_quota_policy", quota_policy_id="roomy", max_concurrent=1000)
    for count, delay_ms in ((250, 100), (100, 200), (250, 300)):
        rows(
            db,
            "ff_create_executions",
            lane_id="default",
            payloads=[b""] * count,
            delay_ms=delay_ms,
            policy=policy,
        )
    holder = connect(autocommit=False)
    holder.execute("select from ff_execution where due_at_ms <> %s for no key update", [clock.now() + 200])
    clock.advance(300)
    assert len(rows(db, function, **WORKER)) > 0
