"""Every end of a lease frees its slot and releases one parked execution; rate limits end by time."""

import pytest
from psycopg.types.json import Jsonb

from tests.quotas.support import HOUR, ask, budget, limits, many, parked, policy, state, sweep, under, use
from tests.sql import claim, create, execution, one, rows, table, take, violations

WILDCARD = Jsonb({"kind": "single", "waitpoint_key": "a", "matcher": "wildcard"})


def suspend(db, row):
    one(db, "ff_seed_waitpoint_hmac_secret", kid="k1")
    rows(db, "ff_suspend", handle=row["handle"], condition=WILDCARD)


def wait_children(db, row):
    upstream = create(db, flow_id=row["flow_id"], lane="elsewhere")
    one(db, "ff_add_dependency", flow_id=row["flow_id"], upstream_execution_id=upstream,
        downstream_execution_id=row["execution_id"])  # fmt: skip
    assert one(db, "ff_wait_children", handle=row["handle"])["outcome"] == "waiting"


ENDS = {
    "complete": lambda db, row: one(db, "ff_complete", handle=row["handle"]),
    "complete_many": lambda db, row: one(db, "ff_complete_many", handles=[row["handle"]]),
    "fail": lambda db, row: one(db, "ff_fail", handle=row["handle"], classification="permanent"),
    "retry": lambda db, row: one(db, "ff_fail", handle=row["handle"]),
    "delay": lambda db, row: one(db, "ff_delay", handle=row["handle"], delay_ms=HOUR),
    "wait_children": wait_children,
    "suspend": suspend,
    "cancel": lambda db, row: one(db, "ff_cancel", handle=row["handle"]),
    "cancel_execution": lambda db, row: one(db, "ff_cancel_execution", execution_id=row["execution_id"]),
    "revoke": lambda db, row: one(db, "ff_revoke_lease", execution_id=row["execution_id"]),
    "override": lambda db, row: one(
        db, "ff_complete_execution", execution_id=row["execution_id"], source="operator_override"
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_an_activity_lets_one_peer_go(db, end):
    policy(db, at_once=1)
    flow = one(db, "ff_create_flow")["flow_id"]
    under(db, priority=9, flow_id=flow, policy={"retry_policy": {"max_retries": 1}})
    row = take(db)
    first, second = under(db, priority=2), under(db, priority=1)
    assert claim(db) is None
    assert parked(db) == 2
    ENDS[end](db, row)
    assert (state(db, first), state(db, second)) == ("eligible_now", "blocked_by_quota")
    assert limits(db)["active_concurrency"] == 0
    if end != "revoke":
        assert take(db)["execution_id"] == first
    assert violations(db) == []


def test_an_end_by_the_clock_lets_a_peer_go(db, clock):
    clock.freeze()
    policy(db, at_once=2)
    timed = under(db, priority=9, policy={"timeout_policy": {"attempt_timeout_ms": 100}})
    late = under(db, priority=8, deadline_at_ms=clock.now() + 100)
    take(db), take(db)
    first, second = under(db, priority=2), under(db, priority=1)
    assert claim(db) is None
    clock.advance(100)
    assert one(db, "ff_expire_execution", execution_id=timed, phase="attempt_timeout")["outcome"] == "expired"
    assert (
        one(db, "ff_expire_execution", execution_id=late, phase="execution_deadline")["outcome"] == "expired"
    )
    assert [state(db, first), state(db, second)] == ["eligible_now"] * 2
    assert violations(db) == []


def test_a_lapsed_lease_frees_its_slot_with_no_help(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    crashed = under(db, lane="crashed")
    take(db, lane="crashed", lease_ttl_ms=1000)
    eid = under(db)
    assert claim(db) is None
    clock.advance(1000)
    # No claim has read the other lane: the row is still leased.
    assert execution(db, crashed)["ownership_state"] == "leased"
    assert limits(db)["active_concurrency"] == 0
    assert take(db)["execution_id"] == eid
    assert claim(db, lane="crashed") is None
    one(db, "ff_mark_lease_expired_if_due", execution_id=crashed)
    assert violations(db) == []


def test_a_marked_lease_lets_a_peer_go(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    crashed = under(db, priority=9)
    take(db, lease_ttl_ms=1000)
    eid = under(db)
    assert claim(db) is None
    clock.advance(1000)
    one(db, "ff_mark_lease_expired_if_due", execution_id=crashed)
    assert state(db, eid) == "eligible_now"
    assert take(db)["handle_kind"] == "reclaimed"
    assert claim(db) is None
    assert violations(db) == []


def test_a_renewed_lease_keeps_its_slot(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    many(db, 2, "q")
    row = take(db, lease_ttl_ms=1000)
    clock.advance(999)
    one(db, "ff_renew", handle=row["handle"])
    clock.advance(999)
    assert claim(db) is None
    assert limits(db)["active_concurrency"] == 1


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_renewal_under_way_keeps_its_slot(db, connect, clock):
    now = clock.freeze()
    policy(db, at_once=1)
    under(db, lane="other")
    row = take(db, lane="other", lease_ttl_ms=1000)
    waiting = under(db)
    renewing = connect(autocommit=False)
    one(renewing, "ff_renew", handle=row["handle"], lease_ttl_ms=5000)
    clock.set(now + 1000)
    # The lease has lapsed by what others can see, but its row is locked.
    assert claim(db) is None
    renewing.commit()
    assert claim(db) is None
    assert limits(db)["active_concurrency"] == 1
    one(db, "ff_complete", handle=row["handle"])
    assert take(db)["execution_id"] == waiting


def test_the_end_of_an_execution_gives_its_reservation_back(db):
    policy(db, at_once=1)
    eid = under(db, priority=9)
    ask(db, eid)
    peer = under(db, lane="other")
    assert claim(db, lane="other") is None
    one(db, "ff_cancel_execution", execution_id=eid)
    assert state(db, peer) == "eligible_now"
    assert table(db, "select * from ff_quota_reservation") == []


def test_many_completions_let_as_many_peers_go(db):
    policy(db, at_once=3)
    many(db, 8, "q")
    held = rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w", limit=9)
    assert len(held) == 3
    assert parked(db) == 5
    rows(db, "ff_complete_many", handles=[row["handle"] for row in held])
    assert parked(db) == 2


def test_a_peer_that_is_busy_is_passed_over(db, connect):
    policy(db, at_once=1)
    eids = many(db, 3, "q")
    row = take(db)
    assert claim(db) is None
    busy = connect(autocommit=False)
    busy.execute("select from ff_execution where execution_id = %s for update", [eids[1].split(":")[-1]])
    one(db, "ff_complete", handle=row["handle"])
    busy.rollback()
    assert [state(db, eid) for eid in eids[1:]] == ["blocked_by_quota", "eligible_now"]


def test_rate_limited_work_is_released_when_due_and_only_as_the_window_allows(db, clock):
    clock.freeze()
    policy(db, per_window=2, window=10)
    many(db, 5, "q")
    for _ in range(2):
        one(db, "ff_complete", handle=take(db)["handle"])
    assert claim(db) is None
    assert parked(db) == 3
    assert sweep(db) == 0
    clock.advance(10_000)
    assert sweep(db) == 2
    assert parked(db) == 1
    take(db), take(db)
    assert sweep(db) == 0
    clock.advance(10_000)
    assert sweep(db) == 1
    take(db)
    assert violations(db) == []


def test_an_end_does_not_release_work_that_waits_for_a_start(db):
    policy(db, at_once=5, per_window=1)
    many(db, 2, "q")
    row = take(db)
    assert claim(db) is None
    one(db, "ff_complete", handle=row["handle"])
    assert parked(db) == 1


def test_a_sweep_lets_go_by_priority_and_age_what_there_is_room_for(db):
    policy(db, at_once=1)
    low = under(db)
    high = under(db, priority=5)
    middle = under(db, priority=3)
    key = create(db, lane="elsewhere")
    ask(db, key)
    assert claim(db) is None
    assert parked(db) == 3
    db.execute("delete from ff_quota_reservation")  # as if it had run out
    assert one(db, "ff_sweep_admissions", limit=0) == {"processed": 0, "errors": 0, "more": False}
    assert sweep(db) == 1
    assert [state(db, eid) for eid in (high, middle, low)] == ["eligible_now"] + ["blocked_by_quota"] * 2
    one(db, "ff_update_quota_policy", quota_policy_id="q", max_concurrent=0)
    assert parked(db) == 0


def test_a_sweep_of_a_lane_leaves_other_lanes_alone(db):
    policy(db, at_once=1)
    here, there = under(db), under(db, lane="there", priority=9)
    key = create(db, lane="elsewhere")
    ask(db, key)
    assert claim(db) is None
    assert claim(db, lane="there") is None
    db.execute("delete from ff_quota_reservation")
    assert sweep(db, lane_id="default") == 1
    assert (state(db, here), state(db, there)) == ("eligible_now", "blocked_by_quota")


def test_a_sweep_goes_in_batches(db):
    budget(db, "b", used=10)
    many(db, 5, policy={"budget_ids": ["b"]})
    assert claim(db) is None
    assert parked(db) == 5
    use(db, "b", 0)
    assert one(db, "ff_sweep_admissions", limit=3) == {"processed": 3, "errors": 0, "more": True}
    assert one(db, "ff_sweep_admissions", limit=3) == {"processed": 2, "errors": 0, "more": False}


def test_a_deleted_policy_or_budget_holds_no_work(db):
    policy(db, at_once=1)
    budget(db, "b", used=10)
    many(db, 2, "q")
    take(db)
    create(db, policy={"budget_ids": ["b"]})
    assert claim(db) is None
    assert parked(db) == 2
    db.execute("delete from ff_quota_policy")
    db.execute("delete from ff_budget")
    assert sweep(db) == 2
    take(db), take(db)


def test_an_empty_claim_needs_no_sweeper(db, clock):
    clock.freeze()
    policy(db, per_window=1, window=1)
    eids = many(db, 3, "q")
    for eid in eids:
        row = take(db)
        assert row["execution_id"] == eid
        assert claim(db) is None
        clock.advance(1000)


def test_a_parked_member_ends_with_its_flow_and_waits_for_its_edges(db):
    policy(db, at_once=1)
    flow = one(db, "ff_create_flow")["flow_id"]
    first, second = under(db, flow_id=flow), under(db, flow_id=flow)
    ask(db, create(db, lane="elsewhere"))
    assert claim(db) is None
    assert parked(db) == 2
    one(db, "ff_add_dependency", flow_id=flow, upstream_execution_id=first, downstream_execution_id=second)
    assert state(db, second) == "blocked_by_dependencies"
    one(db, "ff_cancel_flow", flow_id=flow)
    assert parked(db) == 0
    assert execution(db, first)["public_state"] == "cancelled"
    assert violations(db) == []
