"""ff_sweep_budget_breaches: what a breach ends."""

from itertools import pairwise

import pytest

from tests.budgets.support import attach, breaches, budget, report, status, sweep
from tests.sql import create, events, execution, one, take, violations


def breach(db, action, *executions, budget_id="b"):
    """A budget with that action, these executions attached, and a report that it refused."""
    budget(db, budget_id, on_hard_limit=action)
    for eid in executions:
        attach(db, budget_id, execution_id=eid)
    assert report(db, 101, budget_id)["outcome"] == "hard_breach"


def scene(db, clock):
    """One execution in each state that is not terminal, and one that has ended; the first has a live lease."""
    running = create(db, "a")
    handle = take(db, "a", lease_ttl_ms=10**6)["handle"]
    lapsed, revoked, paused = create(db, "b"), create(db, "c"), create(db, "d")
    take(db, "b", lease_ttl_ms=1)
    take(db, "c", lease_ttl_ms=10**6)
    one(db, "ff_revoke_lease", execution_id=revoked)
    one(db, "ff_delay", handle=take(db, "d")["handle"], delay_ms=0)
    one(db, "ff_seed_waitpoint_hmac_secret", kid="k1")
    suspended = create(db, "e")
    one(
        db,
        "ff_suspend",
        handle=take(db, "e")["handle"],
        condition={"kind": "single", "waitpoint_key": "a", "matcher": "wildcard"},
    )
    done = create(db, "f")
    attach(db, execution_id=done)
    one(db, "ff_complete", handle=take(db, "f")["handle"])
    waiting, delayed = create(db), create(db, delay_ms=10**6)
    clock.advance(1)
    return handle, running, done, [lapsed, revoked, paused, suspended, waiting, delayed]


@pytest.mark.parametrize("action", ["cancel_pending", "cancel_all"])
def test_a_breach_ends_what_is_attached(db, clock, action):
    clock.freeze()
    budget(db, on_hard_limit=action)
    handle, running, done, pending = scene(db, clock)
    other = create(db)
    for eid in (running, *pending):
        attach(db, execution_id=eid)
    report(db, 101)
    ended = [*pending, *([running] if action == "cancel_all" else [])]
    assert sweep(db, "budget_breaches") == (len(ended), 0, False)
    for eid in ended:
        row = execution(db, eid)
        assert (row["public_state"], row["cancellation_reason"], row["cancelled_by"]) == (
            "cancelled",
            "budget_exceeded",
            "engine",
        )
        assert events(db, eid)[-1] == "completion/cancelled:budget_exceeded"
    assert execution(db, done)["public_state"] == "completed"
    assert execution(db, other)["public_state"] == "waiting"
    assert breaches(db) == []
    assert status(db)["breached"] is True  # until it is reset
    if action == "cancel_pending":
        assert one(db, "ff_complete", handle=handle)["outcome"] == "completed"
    assert sweep(db, "budget_breaches") == (0, 0, False)
    assert violations(db) == []


@pytest.mark.parametrize("action", ["fail", "block"])
def test_other_actions_end_nothing(db, action):
    eid = create(db)
    breach(db, action, eid)
    assert sweep(db, "budget_breaches") == (0, 0, False)
    assert execution(db, eid)["public_state"] == "waiting"


def test_a_breach_with_nothing_attached_is_done_with(db):
    breach(db, "cancel_all")
    assert sweep(db, "budget_breaches") == (0, 0, False)
    assert breaches(db) == []


def test_the_next_breach_finds_what_stopped_running_since(db, clock):
    clock.freeze()
    create(db)
    row = take(db, lease_ttl_ms=1000)
    breach(db, "cancel_pending", row["execution_id"])
    assert sweep(db, "budget_breaches") == (0, 0, False)
    assert breaches(db) == []
    clock.advance(1000)
    report(db, 101)
    assert sweep(db, "budget_breaches") == (1, 0, False)
    assert execution(db, row["execution_id"])["public_state"] == "cancelled"


def test_breaches_are_worked_off_in_batches(db):
    executions = [create(db) for _ in range(5)]
    breach(db, "cancel_all", *executions[:3])
    breach(db, "cancel_all", *executions[3:], budget_id="c")
    assert sweep(db, "budget_breaches", limit=0) == (0, 0, False)
    assert sweep(db, "budget_breaches", limit=2) == (2, 0, True)
    assert breaches(db) == ["b", "c"]
    assert sweep(db, "budget_breaches", limit=2) == (2, 0, True)
    assert breaches(db) == ["c"]
    assert sweep(db, "budget_breaches", limit=2) == (1, 0, False)
    assert breaches(db) == []


@pytest.mark.parametrize("way", ["reset", "raised"])
def test_a_breach_that_is_over_ends_nothing(db, way):
    eid = create(db)
    breach(db, "cancel_all", eid)
    if way == "reset":
        one(db, "ff_reset_budget", budget_id="b")
    else:
        one(db, "ff_update_budget", budget_id="b", dimension="tokens", hard_limit=200)
    assert sweep(db, "budget_breaches") == (0, 0, False)
    assert execution(db, eid)["public_state"] == "waiting"


def test_the_end_of_a_member_is_passed_on_in_its_flow(db):
    flow = one(db, "ff_create_flow")["flow_id"]
    up, down = create(db, flow_id=flow), create(db, flow_id=flow)
    ends = {"flow_id": flow, "upstream_execution_id": up, "downstream_execution_id": down}
    one(db, "ff_add_dependency", **ends)
    breach(db, "cancel_all", up)
    assert sweep(db, "budget_breaches") == (1, 0, False)
    assert execution(db, down)["public_state"] == "skipped"
    assert one(db, "ff_describe_flow", flow_id=flow)["public_flow_state"] == "failed"
    assert violations(db) == []


def test_members_that_end_with_one_another_end_once(db):
    flow = one(db, "ff_create_flow")["flow_id"]
    members = [create(db, flow_id=flow) for _ in range(3)]
    for up, down in pairwise(members):
        ends = {"flow_id": flow, "upstream_execution_id": up, "downstream_execution_id": down}
        one(db, "ff_add_dependency", **ends)
    breach(db, "cancel_all", *members)
    processed, errors, more = sweep(db, "budget_breaches")
    assert (errors, more) == (0, False)
    ended = [execution(db, eid)["public_state"] for eid in members]
    assert ended.count("cancelled") == processed
    assert set(ended) <= {"cancelled", "skipped"}
    for eid in members:
        assert len([event for event in events(db, eid) if event.startswith("completion/")]) == 1
    assert breaches(db) == []
    assert violations(db) == []
