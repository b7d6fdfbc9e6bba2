"""No step waits: not for those who watch a stream, which they do without a lock on its execution, and not for another
step whose transaction is still open."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.flows.graph import begin, fan_in, finish, flow, link, node, state
from tests.maintenance.support import EXECUTION, FLOW, IN_MS, sweep, uuid_of
from tests.sql import create, execution, one, table, take, violations


@pytest.fixture
def holder(db, connect, clock):
    """A connection whose transaction holds what a test locks; a statement that waits for it fails."""
    clock.freeze()
    db.execute("set lock_timeout = '3s'")
    return connect(autocommit=False)


def streaming(db, claim: dict[str, Any]) -> str:
    """The execution of a claim, which has written to its stream; its id."""
    one(db, "ff_append_frame", handle=claim["handle"], payload=b"x")
    return str(claim["execution_id"])


def gone(db, eid: str) -> bool:
    return not table(db, "select from ff_exec_core where execution_id = %s", uuid_of(eid))


def ended(db, holder):
    create(db, policy={"retention_ms": IN_MS})
    claim = take(db)
    eid = streaming(db, claim)
    one(db, "ff_complete", handle=claim["handle"])
    return eid, lambda: gone(db, eid)


def ended_in_a_flow(db, holder):
    flow_id = flow(db)
    claim = begin(db, node(db, flow_id, policy={"retention_ms": IN_MS}))
    eid = streaming(db, claim)
    one(db, "ff_complete", handle=claim["handle"])
    return eid, lambda: gone(db, eid)


def noted_sibling(db, holder):
    _, (winner, sibling), _ = fan_in(db, 2, "any_of")
    eid = streaming(db, begin(db, sibling, lease_ttl_ms=60_000))
    holder.execute(EXECUTION, [uuid_of(sibling)])
    finish(db, winner)
    holder.rollback()
    return eid, lambda: state(db, eid) == "cancelled"


def member_of_a_cancelled_flow(db, holder):
    flow_id = flow(db)
    eid = streaming(db, begin(db, node(db, flow_id), lease_ttl_ms=60_000))
    one(db, "ff_cancel_flow_header", flow_id=flow_id, grace_ms=IN_MS)
    return eid, lambda: state(db, eid) == "cancelled"


def child_that_cannot_run_any_more(db, holder):
    flow_id = flow(db)
    upstream, child = node(db, flow_id), node(db, flow_id)
    claim = begin(db, child)
    eid = streaming(db, claim)
    link(db, flow_id, upstream, child)
    assert one(db, "ff_wait_children", handle=claim["handle"])["outcome"] == "waiting"
    holder.execute(FLOW, [flow_id])
    finish(db, upstream, "failed")
    holder.rollback()
    return eid, lambda: state(db, eid) == "skipped"


Make = Callable[[Any, Any], tuple[str, Callable[[], bool]]]
WATCHED: list[tuple[str, Make]] = [
    ("trim_retention", ended),
    ("trim_retention", ended_in_a_flow),
    ("drain_sibling_cancels", noted_sibling),
    ("drain_cancel_backlog", member_of_a_cancelled_flow),
    ("dispatch_completions", child_that_cannot_run_any_more),
]


@pytest.mark.parametrize(("name", "make"), WATCHED)
def test_a_step_skips_an_execution_with_an_uncommitted_watch_of_its_stream(db, holder, clock, name, make):
    eid, moved = make(db, holder)
    clock.advance(IN_MS)
    one(holder, "ff_watch_stream", execution_id=eid, attempt_index=0)
    assert sweep(db, name)[:2] == (0, 0)
    assert not moved()
    holder.commit()
    clock.advance(60_000)
    sweep(db, name)
    assert moved()
    assert violations(db) == []


def test_dispatch_leaves_a_sibling_with_an_uncommitted_watch_to_the_outbox(db, holder, clock):
    flow_id, (winner, sibling), child = fan_in(db, 2, "any_of")
    streaming(db, begin(db, sibling, lease_ttl_ms=60_000))
    holder.execute(FLOW, [flow_id])
    finish(db, winner)
    holder.rollback()
    one(holder, "ff_watch_stream", execution_id=sibling, attempt_index=0)
    assert sweep(db, "dispatch_completions") == (1, 0, False)
    assert (state(db, sibling), state(db, child)) == ("active", "waiting")
    holder.commit()
    assert sweep(db, "drain_sibling_cancels") == (1, 0, False)
    assert state(db, sibling) == "cancelled"
    assert violations(db) == []


def test_a_peer_is_not_woken_while_a_watch_of_its_stream_is_uncommitted(db, holder, clock):
    """Its flow was cancelled since it was parked: to wake it would be to end it."""
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=1)
    flow_id = flow(db)
    member = node(db, flow_id)
    claim = begin(db, member)
    streaming(db, claim)
    one(db, "ff_delay", handle=claim["handle"], delay_ms=1)
    clock.advance(1)
    one(db, "ff_promote_delayed", execution_id=member)
    one(db, "ff_attach_quota", quota_policy_id="q", execution_id=member)
    one(db, "ff_block_execution_for_admission", execution_id=member, reason="waiting_for_quota")
    one(db, "ff_cancel_flow_header", flow_id=flow_id)
    late = create(db, "other", policy={"quota_policy_id": "q"}, deadline_at_ms=clock.now() + IN_MS)
    take(db, "other")
    clock.advance(IN_MS)
    one(holder, "ff_watch_stream", execution_id=member, attempt_index=0)
    assert sweep(db, "sweep_deadlines") == (1, 0, False)
    assert (state(db, late), state(db, member)) == ("expired", "rate_limited")
    holder.commit()
    clock.advance(60_000)
    sweep(db, "drain_cancel_backlog")
    assert state(db, member) == "cancelled"
    assert violations(db) == []


@pytest.mark.parametrize("name", ["sweep_deadlines", "sweep_attempt_timeouts", "sweep_suspensions"])
def test_a_step_leaves_an_execution_whose_slot_another_is_about_to_drop(db, holder, clock, name):
    one(db, "ff_create_quota_policy", quota_policy_id="q", window_seconds=60)
    options = {
        "sweep_deadlines": {"deadline_at_ms": clock.now() + IN_MS},
        "sweep_attempt_timeouts": {"policy": {"timeout_policy": {"attempt_timeout_ms": IN_MS}}},
        "sweep_suspensions": {},
    }
    eid = create(db, **options[name])
    if name != "sweep_deadlines":
        claim = take(db, lease_ttl_ms=60_000)
    if name == "sweep_suspensions":
        one(db, "ff_seed_waitpoint_hmac_secret", kid="k")
        one(db, "ff_suspend", handle=claim["handle"], condition={"kind": "operator_only"}, timeout_ms=IN_MS)
    one(db, "ff_check_admission", quota_policy_id="q", execution_id=eid, hold_ms=IN_MS)
    clock.advance(IN_MS)
    assert sweep(holder, "sweep_expired") == (1, 0, False)
    assert sweep(db, name) == (0, 0, False)
    holder.rollback()
    assert sweep(db, name) == (1, 0, False)
    assert execution(db, eid)["lifecycle_phase"] == "terminal"
    assert sweep(db, "sweep_expired") == (0, 0, False)
    assert violations(db) == []


def test_a_slot_of_a_locked_execution_is_dropped_later(db, holder, clock):
    one(db, "ff_create_quota_policy", quota_policy_id="q", window_seconds=60)
    eids = [create(db), create(db), "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"]  # the last is not there
    for eid in eids:
        one(db, "ff_check_admission", quota_policy_id="q", execution_id=eid, hold_ms=IN_MS)
    clock.advance(IN_MS)
    holder.execute(EXECUTION, [uuid_of(eids[0])])
    assert sweep(db, "sweep_expired") == (2, 0, False)
    assert [str(row["execution_id"]) for row in table(db, "select * from ff_quota_reservation")] == [
        uuid_of(eids[0])
    ]
    holder.rollback()
    assert sweep(db, "sweep_expired") == (1, 0, False)
    assert violations(db) == []
