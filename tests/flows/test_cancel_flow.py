"""Cancelling flows: three strengths, the backlog, the grace, the acknowledgements."""

import pytest

from tests.flows.graph import (
    STRANGER,
    begin,
    chain,
    describe,
    fan_in,
    finish,
    flow,
    flow_events,
    flow_state,
    link,
    node,
    nodes,
    state,
    states,
    strange_flow,
    undispatched,
)
from tests.sql import claim, create, events, execution, one, refused, rows, table, take, violations


def cancel(db, fid, policy="cancel_all", **args):
    return one(db, "ff_cancel_flow", flow_id=fid, policy=policy, **args)


def owed(db):
    return table(db, "select * from ff_cancel_backlog_member")


def drain(db, **args):
    return one(db, "ff_drain_cancel_backlog", **args)


def mixed(db):
    """A flow with a member in every state; flow, running claim, members by name."""
    fid = flow(db)
    done, running, waiting = nodes(db, fid, 3)
    finish(db, done)
    delayed = node(db, fid, delay_ms=10**6)
    child = node(db, fid)
    link(db, fid, waiting, child)
    row = begin(db, running)
    return (
        fid,
        row,
        {"done": done, "running": running, "waiting": waiting, "delayed": delayed, "child": child},
    )


def test_cancel_all_ends_every_member_that_has_not_ended(db):
    fid, row, m = mixed(db)
    free = create(db)
    found = cancel(db, fid, reason="stop", cancelled_by="me")
    assert found == {
        "outcome": "cancelled",
        "cancellation_policy": "cancel_all",
        "cancel_reason": "stop",
        "member_count": 5,
        "cancelled_count": 4,
        "pending_count": 0,
        "running_count": 0,
    }
    assert state(db, m["done"]) == "completed"
    assert states(db, [m[k] for k in ("running", "waiting", "delayed", "child")]) == ["cancelled"] * 4
    ended = execution(db, m["child"])
    assert (ended["cancellation_reason"], ended["cancelled_by"]) == ("stop", "me")
    with refused("execution_not_active"):
        one(db, "ff_complete", handle=row["handle"])
    found = describe(db, fid)
    assert (found["public_flow_state"], found["claimable"], found["cancel_pending"]) == (
        "cancelled",
        False,
        0,
    )
    assert found["terminal_at_ms"] is not None
    assert table(db, "select * from ff_cancel_backlog") == []
    assert flow_events(db, fid) == ["created", "cancel_requested"]
    (operator,) = table(db, "select * from ff_event where event_type = 'flow_cancel_requested'")
    assert (operator["family"], operator["flow_id"], operator["reason"]) == ("operator", fid, "stop")
    assert take(db)["execution_id"] == free
    assert violations(db) == []


def test_cancel_pending_lets_those_run_that_a_worker_holds(db, clock):
    clock.freeze()
    fid, row, m = mixed(db)
    lapsed = begin(db, node(db, fid), lease_ttl_ms=10)
    revoked = begin(db, node(db, fid))
    one(db, "ff_revoke_lease", execution_id=revoked["execution_id"])
    clock.advance(10)
    found = cancel(db, fid, "cancel_pending")
    assert (found["outcome"], found["cancelled_count"], found["running_count"]) == ("cancelled", 5, 1)
    assert states(db, [lapsed["execution_id"], revoked["execution_id"]]) == ["cancelled"] * 2
    assert state(db, m["running"]) == "active"
    assert describe(db, fid)["cancel_pending"] == 1
    assert violations(db) == []
    one(db, "ff_renew", handle=row["handle"])
    one(db, "ff_complete", handle=row["handle"])
    assert state(db, m["running"]) == "completed"
    assert owed(db) == []
    assert table(db, "select * from ff_cancel_backlog") == []
    assert flow_state(db, fid) == "cancelled"
    assert violations(db) == []


def test_a_running_member_of_a_cancelled_flow_can_neither_pause_nor_be_retried(db, clock):
    clock.freeze()
    fid = flow(db)
    retrying = {"retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 0}}}
    first, second = (begin(db, node(db, fid, policy=retrying)) for _ in range(2))
    third = begin(db, node(db, fid, policy={**retrying, "timeout_policy": {"attempt_timeout_ms": 20_000}}))
    cancel(db, fid, "cancel_pending")
    with refused("flow_cancelled"):
        one(db, "ff_delay", handle=first["handle"], delay_ms=1)
    with refused("flow_cancelled"):
        one(db, "ff_wait_children", handle=first["handle"])
    assert one(db, "ff_fail", handle=first["handle"])["outcome"] == "terminal_failed"
    clock.advance(20_000)
    out = one(db, "ff_expire_execution", execution_id=third["execution_id"], phase="attempt_timeout")
    assert (out["outcome"], out["public_state"]) == ("expired", "expired")
    assert [r["execution_id"] for r in owed(db)] != []
    # A lease that is lost is not handed out again: the backlog ends it.
    clock.advance(10_000)
    assert claim(db) is None
    worker = {"worker_id": "w", "worker_instance_id": "w"}
    grant = one(db, "ff_issue_reclaim_grant", execution_id=second["execution_id"], **worker)
    assert (grant["outcome"], grant["detail"]) == ("not_reclaimable", "flow_not_claimable")
    assert state(db, second["execution_id"]) == "active"
    assert drain(db)["processed"] == 1
    assert state(db, second["execution_id"]) == "cancelled"
    assert owed(db) == []
    assert violations(db) == []


def test_a_reclaim_granted_before_the_flow_was_cancelled_is_not_redeemed(db, clock):
    clock.freeze()
    fid = flow(db)
    row = begin(db, node(db, fid), lease_ttl_ms=10)
    clock.advance(10)
    worker = {"worker_id": "w", "worker_instance_id": "w"}
    grant = one(db, "ff_issue_reclaim_grant", execution_id=row["execution_id"], **worker)["grant_id"]
    one(db, "ff_cancel_flow_header", flow_id=fid)
    found = one(db, "ff_reclaim_execution", execution_id=row["execution_id"], grant_id=grant, **worker)
    assert found["outcome"] == "not_reclaimable"
    assert table(db, "select * from ff_claim_grant") == []


def test_cancel_flow_only_freezes_the_graph_and_nothing_else(db):
    fid, (_, b) = chain(db, 2)
    found = cancel(db, fid, "cancel_flow_only")
    assert (found["outcome"], found["cancelled_count"], found["pending_count"]) == ("cancelled", 0, 0)
    assert table(db, "select * from ff_cancel_backlog") == []
    with refused("flow_already_terminal"):
        node(db, fid)
    with refused("flow_already_terminal"):
        link(db, fid, b, STRANGER)
    one(db, "ff_complete", handle=take(db)["handle"])
    assert state(db, b) == "waiting"
    one(db, "ff_fail", handle=take(db)["handle"])
    found = describe(db, fid)
    assert (found["public_flow_state"], found["live_members"], found["derived_state"]) == (
        "cancelled",
        0,
        "failed",
    )
    assert violations(db) == []


def test_cancelling_only_a_flow_that_was_never_started_frees_its_members(db):
    fid = flow(db, hold=True)
    eid = node(db, fid)
    assert claim(db) is None
    cancel(db, fid, "cancel_flow_only")
    assert take(db)["execution_id"] == eid
    assert violations(db) == []


def test_a_held_flow_is_cancelled_with_its_members(db):
    fid = flow(db, hold=True)
    members = nodes(db, fid, 2)
    assert cancel(db, fid)["cancelled_count"] == 2
    assert states(db, members) == ["cancelled"] * 2
    assert violations(db) == []


def test_a_stronger_policy_may_follow_a_weaker_one_and_never_the_reverse(db):
    fid = flow(db)
    running = begin(db, node(db, fid))["execution_id"]
    waiting = node(db, fid)
    assert cancel(db, fid, "cancel_flow_only", reason="one")["outcome"] == "cancelled"
    found = cancel(db, fid, "cancel_pending", reason="two")
    assert (found["outcome"], found["cancelled_count"], found["running_count"]) == ("escalated", 1, 1)
    for weaker in ("cancel_flow_only", "cancel_pending"):
        found = cancel(db, fid, weaker, reason="three")
        assert (found["outcome"], found["cancellation_policy"], found["cancel_reason"]) == (
            "already_terminal",
            "cancel_pending",
            "two",
        )
        assert (found["cancelled_count"], found["running_count"]) == (0, 1)
    assert states(db, [running, waiting]) == ["active", "cancelled"]
    found = cancel(db, fid, "cancel_all", reason="four")
    assert (found["outcome"], found["cancelled_count"]) == ("escalated", 1)
    assert execution(db, running)["cancellation_reason"] == "four"
    assert cancel(db, fid)["outcome"] == "already_terminal"
    assert flow_events(db, fid) == ["created"] + ["cancel_requested"] * 3
    assert violations(db) == []


@pytest.mark.parametrize("outcome", ["success", "failed"])
def test_a_flow_that_has_ended_stays_as_it_is(db, outcome):
    fid = flow(db)
    finish(db, node(db, fid), outcome)
    before = describe(db, fid)
    found = cancel(db, fid)
    assert (found["outcome"], found["cancellation_policy"], found["member_count"]) == (
        "already_terminal",
        None,
        1,
    )
    assert describe(db, fid) == before


def test_cancelling_checks_its_arguments_and_the_flow(db):
    fid = flow(db)
    for wrong in (
        {"policy": "x"},
        {"policy": None},
        {"max_members": -1},
        {"max_members": None},
        {"reason": None},
        {"cancelled_by": "a\nb"},
    ):
        with refused("invalid_input"):
            cancel(db, fid, **wrong)
    with refused("flow_not_found"):
        cancel(db, strange_flow())
    with refused("invalid_input"):
        cancel(db, None)
    with refused("invalid_input"):
        one(db, "ff_cancel_flow_header", flow_id=fid, grace_ms=-1)
    with refused("flow_not_found"):
        one(db, "ff_cancel_flow_header", flow_id=strange_flow())


def test_more_members_than_one_call_may_end_are_left_to_the_backlog(db):
    fid = flow(db)
    members = nodes(db, fid, 7)
    found = cancel(db, fid, max_members=3)
    assert (found["outcome"], found["cancelled_count"], found["pending_count"]) == (
        "cancellation_scheduled",
        3,
        4,
    )
    assert states(db, sorted(members, key=lambda e: e[-36:])[:3]) == ["cancelled"] * 3
    assert describe(db, fid)["cancel_pending"] == 4
    assert claim(db) is None
    assert violations(db) == []
    assert drain(db, limit=2) == {"processed": 2, "errors": 0, "more": True}
    assert drain(db, flow_id=strange_flow()) == {"processed": 0, "errors": 0, "more": False}
    assert drain(db, flow_id=fid) == {"processed": 2, "errors": 0, "more": False}
    assert states(db, members) == ["cancelled"] * 7
    assert describe(db, fid)["cancel_pending"] == 0
    assert table(db, "select * from ff_cancel_backlog") == []
    assert violations(db) == []


def test_members_of_a_flow_cancelled_with_a_grace_are_not_touched_before_it_is_over(db, clock):
    clock.freeze()
    fid, (a, b) = chain(db, 2)
    row = begin(db, a)
    found = one(db, "ff_cancel_flow_header", flow_id=fid, grace_ms=1000)
    assert (found["outcome"], found["cancellation_policy"]) == ("cancelled", "cancel_all")
    assert sorted(found["member_execution_ids"]) == sorted([a, b])
    assert states(db, [a, b]) == ["active", "waiting_children"]
    assert drain(db)["processed"] == 0
    assert drain(db, flow_id=fid)["processed"] == 0
    again = one(db, "ff_cancel_flow_header", flow_id=fid)
    assert (again["outcome"], len(again["member_execution_ids"])) == ("already_terminal", 2)
    assert violations(db) == []
    # A child whose upstream ends meanwhile is cancelled with the flow, not released.
    one(db, "ff_complete", handle=row["handle"])
    assert states(db, [a, b]) == ["completed", "cancelled"]
    assert owed(db) == []
    assert violations(db) == []


def test_the_backlog_is_drained_when_the_grace_is_over(db, clock):
    clock.freeze()
    fid = flow(db)
    members = nodes(db, fid, 2)
    one(db, "ff_cancel_flow_header", flow_id=fid, grace_ms=1000)
    clock.advance(1000)
    assert claim(db) is None
    assert drain(db) == {"processed": 2, "errors": 0, "more": False}
    assert states(db, members) == ["cancelled"] * 2
    assert violations(db) == []


def test_only_running_members_left_push_the_backlog_back(db, clock):
    now = clock.freeze()
    fid = flow(db)
    begin(db, node(db, fid), lease_ttl_ms=6000)
    cancel(db, fid, "cancel_pending")
    assert drain(db)["processed"] == 0
    (header,) = table(db, "select * from ff_cancel_backlog")
    assert header["grace_until_ms"] == now + 5000
    clock.advance(5000)
    assert drain(db)["processed"] == 0
    clock.advance(5000)
    assert drain(db)["processed"] == 1
    assert table(db, "select * from ff_cancel_backlog") == []
    assert violations(db) == []


def ack(db, fid, eid, **args):
    return one(db, "ff_ack_cancel_member", flow_id=fid, execution_id=eid, **args)


def test_an_outside_dispatcher_acknowledges_members_that_have_ended(db):
    fid = flow(db)
    a, b = nodes(db, fid, 2)
    row = begin(db, a)
    one(db, "ff_cancel_flow_header", flow_id=fid)
    with refused("execution_not_terminal"):
        ack(db, fid, a)
    assert ack(db, fid, a, force=True) == {"outcome": "acked", "remaining": 1}
    assert ack(db, fid, a) == {"outcome": "not_pending", "remaining": 1}
    assert violations(db) == []
    one(db, "ff_cancel_execution", execution_id=b, source="flow_cascade")
    assert ack(db, fid, b) == {"outcome": "not_pending", "remaining": 0}
    assert table(db, "select * from ff_cancel_backlog") == []
    assert ack(db, strange_flow(), a)["outcome"] == "not_pending"
    assert ack(db, fid, STRANGER)["outcome"] == "not_pending"
    with refused("invalid_execution_id"):
        ack(db, fid, "x")
    with refused("invalid_input"):
        ack(db, None, a)
    with refused("invalid_input"):
        ack(db, fid, a, force=None)
    one(db, "ff_complete", handle=row["handle"])
    assert violations(db) == []


def test_the_backlog_of_a_flow_that_is_gone_is_dropped(db):
    fid = flow(db)
    eid = node(db, fid)
    one(db, "ff_cancel_flow_header", flow_id=fid, grace_ms=0)
    db.execute("delete from ff_flow_core")
    assert drain(db)["processed"] == 1
    assert owed(db) == []
    assert table(db, "select * from ff_cancel_backlog") == []
    assert state(db, eid) == "waiting"


def test_a_sibling_in_the_outbox_is_cancelled_unless_it_ended_or_is_needed_again(db):
    fid, (a, b, c), child = fan_in(db, 3, "any_of", on_satisfied="let_run")
    other = node(db, fid)
    link(db, fid, c, other)
    finish(db, a)
    done = node(db, fid)
    finish(db, done)
    for target in (b, c, done):
        db.execute(
            "insert into ff_cancel_dispatch_outbox values (%s, %s, %s, 1, 'sibling_quorum_satisfied')",
            [target[-36:], child[-36:], fid],
        )
    assert one(db, "ff_drain_sibling_cancels", limit=0)["processed"] == 0
    assert one(db, "ff_drain_sibling_cancels") == {"processed": 3, "errors": 0, "more": False}
    assert states(db, [b, c, done]) == ["cancelled", "waiting", "completed"]
    assert execution(db, b)["cancellation_reason"] == "sibling_quorum_satisfied"
    assert table(db, "select * from ff_cancel_dispatch_outbox") == []
    assert undispatched(db) == []
    assert events(db, b) == ["completion/cancelled:sibling_quorum_satisfied"]
    assert violations(db) == []


def test_a_delay_that_ends_in_a_cancelled_flow_ends_the_member(db, clock):
    clock.freeze()
    fid = flow(db)
    eid = node(db, fid, delay_ms=10)
    one(db, "ff_cancel_flow_header", flow_id=fid, reason="why", cancelled_by="who")
    clock.advance(10)
    assert one(db, "ff_promote_delayed", execution_id=eid)["public_state"] == "cancelled"
    row = execution(db, eid)
    assert (row["cancellation_reason"], row["cancelled_by"]) == ("why", "who")
    assert owed(db) == []
    assert violations(db) == []


def test_eligibility_is_explained(db):
    assert one(db, "ff_evaluate_flow_eligibility", execution_id=STRANGER)["status"] == "not_found"
    fid, (a,), child = fan_in(db, 1)
    row = begin(db, a)
    found = {
        "running": one(db, "ff_evaluate_flow_eligibility", execution_id=a),
        "child": one(db, "ff_evaluate_flow_eligibility", execution_id=child),
        "solo": one(db, "ff_evaluate_flow_eligibility", execution_id=create(db, "x")),
    }
    assert {k: v["status"] for k, v in found.items()} == {
        "running": "not_runnable",
        "child": "blocked_by_dependencies",
        "solo": "eligible",
    }
    assert (found["child"]["pending_edges"], found["child"]["eligibility_state"]) == (
        1,
        "blocked_by_dependencies",
    )
    free = node(db, fid)
    one(db, "ff_cancel_flow_header", flow_id=fid)
    assert one(db, "ff_evaluate_flow_eligibility", execution_id=free)["status"] == "flow_cancelled"
    one(db, "ff_complete", handle=row["handle"])
    assert one(db, "ff_evaluate_flow_eligibility", execution_id=a)["status"] == "terminal"
    assert rows(db, "ff_resolve_execution_flow_id", execution_id=STRANGER) == []
