"""Replays of members, and their effects on the flow."""

import pytest

from tests.flows.graph import (
    begin,
    chain,
    describe,
    edge,
    fan_in,
    finish,
    flow,
    flow_events,
    flow_state,
    group,
    leave_undispatched,
    link,
    node,
    nodes,
    state,
    states,
    undispatched,
)
from tests.sql import one, refused, table, violations


def replay(db, eid):
    return one(db, "ff_replay_execution", execution_id=eid)


def test_a_child_that_has_not_begun_waits_again_for_a_replayed_upstream(db):
    fid, (a, b) = chain(db, 2)
    finish(db, a)
    assert state(db, b) == "waiting"
    assert replay(db, a)["public_state"] == "waiting"
    assert state(db, b) == "waiting_children"
    found = edge(db, fid, a, b)
    assert (found["edge_state"], found["upstream_outcome"], found["resolved_at_ms"]) == (
        "applied",
        None,
        None,
    )
    assert group(db, fid, b)["group_state"] == "pending"
    assert describe(db, fid)["live_members"] == 2
    assert violations(db) == []
    finish(db, a)
    assert state(db, b) == "waiting"
    assert violations(db) == []


@pytest.mark.parametrize("begun", ["running", "ended"])
def test_a_child_that_has_begun_is_not_touched(db, begun):
    fid, (a, b) = chain(db, 2)
    finish(db, a)
    row = begin(db, b)
    if begun == "ended":
        one(db, "ff_complete", handle=row["handle"])
        assert flow_state(db, fid) == "completed"
    replay(db, a)
    assert edge(db, fid, a, b)["edge_state"] == "satisfied"
    assert group(db, fid, b)["n_success"] == 1
    assert flow_state(db, fid) == "open"
    assert violations(db) == []
    finish(db, a, "failed")
    assert edge(db, fid, a, b)["edge_state"] == "satisfied"
    assert violations(db) == []
    if begun == "ended":
        assert flow_events(db, fid) == ["created", "completed", "reopened", "completed"]


def test_a_skipped_member_waits_for_the_replay_of_what_failed(db):
    fid, (a, b, c) = chain(db, 3)
    finish(db, a, "failed")
    assert flow_state(db, fid) == "failed"
    assert replay(db, b) == {"outcome": "replayed", "public_state": "waiting_children", "replay_count": 1}
    assert edge(db, fid, a, b)["reopened_at_ms"] is not None
    assert flow_state(db, fid) == "open"
    assert violations(db) == []
    replay(db, a)
    assert edge(db, fid, a, b)["reopened_at_ms"] is None
    finish(db, a)
    assert states(db, [b, c]) == ["waiting", "skipped"]
    assert violations(db) == []
    assert replay(db, c)["public_state"] == "waiting_children"
    finish(db, b)
    finish(db, c)
    assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_a_skipped_member_goes_on_if_its_upstream_has_succeeded_since(db):
    fid, (a, b) = chain(db, 2)
    finish(db, a, "failed")
    replay(db, a)
    finish(db, a)
    assert state(db, b) == "skipped"
    assert edge(db, fid, a, b)["edge_state"] == "failed"
    assert replay(db, b)["public_state"] == "waiting"
    assert edge(db, fid, a, b)["edge_state"] == "satisfied"
    finish(db, b)
    assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_a_member_that_failed_itself_follows_the_current_state_of_its_group(db):
    fid, (a, b), child = fan_in(db, 2)
    finish(db, a)
    finish(db, b)
    finish(db, child, "failed")
    assert replay(db, child)["public_state"] == "waiting"
    finish(db, child)
    assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_a_member_cancelled_while_it_waited_waits_again(db):
    fid, (a, b), child = fan_in(db, 2)
    finish(db, a)
    finish(db, child, "cancelled")
    assert group(db, fid, child)["group_state"] == "cancelled"
    finish(db, b)
    assert group(db, fid, child)["group_state"] == "cancelled"
    assert replay(db, child)["public_state"] == "waiting"
    assert group(db, fid, child)["group_state"] == "satisfied"
    assert violations(db) == []


def test_a_member_that_never_began_waits_for_what_was_replayed_while_it_was_over(db):
    fid, (a, b), child = fan_in(db, 2)
    finish(db, a)
    finish(db, child, "cancelled")
    replay(db, a)
    assert edge(db, fid, a, child)["edge_state"] == "satisfied"
    assert violations(db) == []
    assert replay(db, child)["public_state"] == "waiting_children"
    assert edge(db, fid, a, child)["edge_state"] == "applied"
    assert violations(db) == []
    finish(db, a)
    finish(db, b)
    assert state(db, child) == "waiting"


def test_a_replay_that_cannot_come_about_is_counted_and_ends_skipped(db):
    fid = flow(db)
    a, child = nodes(db, fid, 2)
    row = begin(db, child)
    link(db, fid, a, child)
    finish(db, a, "failed")
    one(db, "ff_complete", handle=row["handle"])
    assert group(db, fid, child)["group_state"] == "impossible"
    assert replay(db, child) == {"outcome": "replayed", "public_state": "skipped", "replay_count": 1}
    assert flow_state(db, fid) == "failed"
    assert violations(db) == []


def test_a_replay_before_the_end_was_dispatched_takes_the_end_back(db):
    fid, (a, b) = chain(db, 2)
    row = leave_undispatched(db, fid, lambda: finish(db, a, "failed"))
    replay(db, a)
    assert undispatched(db) == []
    assert one(db, "ff_dispatch_completion", event_id=row["event_id"])["outcome"] == "noop"
    assert (state(db, b), describe(db, fid)["live_members"]) == ("waiting_children", 2)
    assert violations(db) == []
    finish(db, a)
    assert state(db, b) == "waiting"


def test_an_end_that_is_half_dispatched_does_not_meet_an_edge_that_was_reopened_since(db):
    fid = flow(db)
    root, *children = nodes(db, fid, 3)
    for child in children:
        link(db, fid, root, child)
    row = leave_undispatched(db, fid, lambda: finish(db, root, "failed"))
    call = {"event_id": row["event_id"], "max_edges": 1}
    assert one(db, "ff_dispatch_completion", **call)["outcome"] == "partial"
    (skipped,) = [child for child in children if state(db, child) == "skipped"]
    # The replay dispatches the other half; the edge that it reopened waits for the replay of its upstream.
    assert replay(db, skipped)["public_state"] == "waiting_children"
    one(db, "ff_dispatch_completions")
    assert state(db, skipped) == "waiting_children"
    assert edge(db, fid, root, skipped)["reopened_at_ms"] is not None
    assert undispatched(db) == []
    assert violations(db) == []


def test_a_fired_race_is_open_again_while_its_child_has_not_begun(db):
    fid, (a, b), child = fan_in(db, 2, "any_of", on_satisfied="let_run")
    finish(db, a)
    replay(db, a)
    assert (group(db, fid, child)["group_state"], state(db, child)) == ("pending", "waiting_children")
    finish(db, b)
    assert state(db, child) == "waiting"
    assert violations(db) == []


def test_no_member_of_a_cancelled_flow_is_replayed(db):
    fid = flow(db)
    eid = node(db, fid)
    with refused("execution_not_terminal"):
        replay(db, eid)
    one(db, "ff_cancel_flow", flow_id=fid)
    with refused("flow_already_terminal"):
        replay(db, eid)
    capped = node(db, flow(db), policy={"max_replay_count": 0})
    finish(db, capped)
    with refused("max_replays_exhausted"):
        replay(db, capped)
    (event,) = table(db, "select * from ff_event where event_type = 'cancelled' and family = 'completion'")
    assert event["flow_id"] == fid


def test_the_results_of_a_replayed_upstream_are_not_offered_while_it_runs(db):
    fid, (a, b) = chain(db, 2)
    finish(db, a, result=b"old")
    row = begin(db, b)
    replay(db, a)
    (read,) = table(db, "select * from ff_read_dependency_inputs(%s)", b)
    assert read["result"] is None
    finish(db, a, result=b"new")
    (read,) = table(db, "select * from ff_read_dependency_inputs(%s)", b)
    assert read["result"] == b"new"
    one(db, "ff_complete", handle=row["handle"])
    assert flow_state(db, fid) == "completed"


def test_a_cancelled_sibling_that_is_replayed_may_run(db):
    _, ups, _ = fan_in(db, 2, "any_of")
    finish(db, ups[0])
    assert state(db, ups[1]) == "cancelled"
    one(db, "ff_replay_execution", execution_id=ups[1])
    assert violations(db) == []
    finish(db, ups[1])
    assert violations(db) == []
