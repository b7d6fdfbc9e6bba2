"""The effects of a member's end on its dependents."""

import pytest

from tests.flows.graph import (
    apply,
    begin,
    busy_flows,
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
    policy,
    stage,
    state,
    states,
    undispatched,
)
from tests.sql import claim, events, execution, one, refused, rows, table, take, violations


def test_the_child_is_claimable_as_soon_as_its_last_upstream_has_completed(db):
    fid, (a, b), child = fan_in(db, 2)
    finish(db, a)
    assert state(db, child) == "waiting_children"
    finish(db, b)
    assert undispatched(db) == []
    row = claim(db)
    assert (row["execution_id"], row["handle_kind"]) == (child, "fresh")
    one(db, "ff_complete", handle=row["handle"])
    found = describe(db, fid)
    assert (found["public_flow_state"], found["derived_state"], found["live_members"]) == (
        "completed",
        "completed",
        0,
    )
    assert flow_events(db, fid) == ["created", "completed"]
    assert violations(db) == []


@pytest.mark.parametrize("outcome", ["failed", "cancelled"])
def test_a_bad_end_skips_everything_behind_it(db, outcome):
    fid, members = chain(db, 4)
    finish(db, members[0], outcome)
    assert states(db, members[1:]) == ["skipped"] * 3
    row = execution(db, members[3])
    assert (row["failure_reason"], row["total_attempt_count"]) == ("dependency_impossible", 0)
    assert events(db, members[1]) == ["completion/skipped:dependency_impossible"]
    assert edge(db, fid, members[0], members[1])["edge_state"] == "failed"
    assert edge(db, fid, members[1], members[2])["edge_state"] == "skipped"
    assert flow_state(db, fid) == "failed"
    assert undispatched(db) == []
    assert violations(db) == []


def test_an_expired_upstream_counts_as_failed(db, clock):
    now = clock.freeze()
    fid = flow(db)
    a = node(db, fid, deadline_at_ms=now + 10)
    b = node(db, fid)
    link(db, fid, a, b)
    clock.advance(10)
    assert claim(db) is None
    assert states(db, [a, b]) == ["expired", "skipped"]
    assert edge(db, fid, a, b)["upstream_outcome"] == "expired"
    assert violations(db) == []


def test_whatever_happened_satisfies_an_edge_of_kind_any_terminal(db):
    fid = flow(db)
    a, b, c = nodes(db, fid, 3)
    link(db, fid, a, b, dependency_kind="any_terminal")
    link(db, fid, b, c, dependency_kind="any_terminal")
    finish(db, a, "failed")
    assert states(db, [b, c]) == ["waiting", "waiting_children"]
    finish(db, b, "cancelled")
    finish(db, c)
    assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_the_first_success_fires_any_of_and_cancels_the_rest(db):
    fid, (a, b, c), child = fan_in(db, 3, "any_of")
    handle = begin(db, b)["handle"]
    finish(db, a)
    assert states(db, [b, c, child]) == ["cancelled", "cancelled", "waiting"]
    row = execution(db, c)
    assert (row["cancellation_reason"], row["cancelled_by"]) == ("sibling_quorum_satisfied", "engine")
    assert events(db, b)[-2:] == ["lease/released:cancel", "completion/cancelled:sibling_quorum_satisfied"]
    with refused("execution_not_active"):
        one(db, "ff_complete", handle=handle)
    found = group(db, fid, child)
    assert (found["group_state"], found["n_success"], found["n_failed"]) == ("satisfied", 1, 2)
    finish(db, child)
    assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_let_run_lets_the_rest_run_and_the_group_fires_once(db):
    fid, (a, b, c), child = fan_in(db, 3, "any_of", on_satisfied="let_run")
    finish(db, a)
    running = begin(db, b)["handle"]
    handle = begin(db, child)["handle"]
    one(db, "ff_complete", handle=running)
    finish(db, c, "failed")
    assert state(db, child) == "active"
    found = group(db, fid, child)
    assert (found["n_success"], found["n_failed"], found["n_running"]) == (2, 1, 0)
    one(db, "ff_complete", handle=handle)
    assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_a_quorum_fires_at_k_and_is_impossible_when_k_cannot_be_reached(db):
    fid, ups, child = fan_in(db, 4, "quorum", k=2, on_satisfied="let_run")
    finish(db, ups[0], "failed")
    finish(db, ups[1])
    assert state(db, child) == "waiting_children"
    finish(db, ups[2])
    assert state(db, child) == "waiting"
    finish(db, ups[3], "failed")
    assert state(db, child) == "waiting"

    fid, ups, child = fan_in(db, 4, "quorum", k=3)
    finish(db, ups[0], "failed")
    assert state(db, child) == "waiting_children"
    finish(db, ups[1], "failed")
    assert states(db, [child, *ups[2:]]) == ["skipped", "cancelled", "cancelled"]
    assert execution(db, ups[2])["cancellation_reason"] == "sibling_quorum_impossible"
    assert flow_state(db, fid) == "failed"
    assert violations(db) == []


def test_a_quorum_with_fewer_edges_than_it_needs_goes_on_waiting(db):
    fid = flow(db)
    a, b, child = nodes(db, fid, 3)
    policy(db, fid, child, "quorum", k=2)
    link(db, fid, a, child)
    finish(db, a, "failed")
    assert group(db, fid, child)["group_state"] == "pending"
    found = one(db, "ff_evaluate_flow_eligibility", execution_id=child)
    assert (found["status"], found["pending_edges"]) == ("blocked_by_dependencies", 0)
    assert "quorum of 2" in found["detail"]
    link(db, fid, b, child)
    assert group(db, fid, child)["group_state"] == "impossible"
    assert state(db, child) == "skipped"
    assert violations(db) == []


def test_a_sibling_that_another_member_waits_for_is_not_cancelled(db):
    fid, (a, shared, alone), _ = fan_in(db, 3, "any_of")
    other = node(db, fid)
    link(db, fid, shared, other)
    finish(db, a)
    assert states(db, [shared, alone]) == ["waiting", "cancelled"]
    assert violations(db) == []
    # Once no member waits for it, it is cancelled like the others.
    one(db, "ff_cancel_execution", execution_id=other)
    assert state(db, shared) == "cancelled"
    assert violations(db) == []


def test_a_staged_edge_does_not_keep_a_sibling_when_its_group_is_decided(db):
    fid, (a, shared), child = fan_in(db, 2, "any_of")
    other = node(db, fid)
    staged = stage(db, fid, shared, other)
    finish(db, a)
    assert states(db, [shared, child, other]) == ["cancelled", "waiting", "waiting"]
    assert violations(db) == []
    # The edge counts from when it is applied.
    assert apply(db, fid, staged["edge_id"])["child_public_state"] == "skipped"
    assert violations(db) == []


def test_a_staged_edge_does_not_keep_a_sibling_when_another_group_is_decided(db):
    fid, (a, shared), _ = fan_in(db, 2, "any_of")
    second, b, other = nodes(db, fid, 3)
    policy(db, fid, second, "any_of", on_satisfied="let_run")
    link(db, fid, shared, second)
    link(db, fid, b, second)
    stage(db, fid, shared, other)
    finish(db, a)
    assert state(db, shared) == "waiting"  # the second group needs it
    assert violations(db) == []
    finish(db, b)
    assert state(db, shared) == "cancelled"
    assert violations(db) == []


def test_the_upstream_of_a_staged_edge_is_not_a_sibling(db):
    fid = flow(db)
    a, outsider, child = nodes(db, fid, 3)
    policy(db, fid, child, "any_of")
    link(db, fid, a, child)
    staged = stage(db, fid, outsider, child)
    finish(db, a)
    assert states(db, [outsider, child]) == ["waiting", "waiting"]
    assert violations(db) == []
    # Applied to a group that is decided, it makes its upstream one that is not needed.
    apply(db, fid, staged["edge_id"])
    assert state(db, outsider) == "cancelled"
    assert violations(db) == []


def test_the_result_of_an_upstream_is_read_and_the_payload_left_alone(db):
    fid = flow(db)
    a, b, c = nodes(db, fid, 3)
    child = node(db, fid, payload=b"mine")
    for upstream, ref in ((a, "left"), (b, None)):
        link(db, fid, upstream, child, data_passing_ref=ref)
    link(db, fid, c, child, dependency_kind="any_terminal")
    finish(db, a, result=b"A")
    finish(db, b, result=b"B")
    read = rows(db, "ff_read_dependency_inputs", execution_id=child)
    assert {(r["upstream_execution_id"], r["data_passing_ref"], r["outcome"], r["result"]) for r in read} == {
        (a, "left", "success", b"A"),
        (b, None, "success", b"B"),
    }
    finish(db, c, "failed")
    failed = [
        r for r in rows(db, "ff_read_dependency_inputs", execution_id=child) if r["outcome"] == "failed"
    ]
    assert [r["result"] for r in failed] == [None]
    assert take(db)["payload"] == b"mine"
    assert rows(db, "ff_read_dependency_inputs", execution_id=a) == []


def test_a_running_child_is_left_alone_until_it_becomes_runnable_again(db):
    fid = flow(db)
    a = node(db, fid)
    child = node(
        db, fid, policy={"retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 0}}}
    )
    handle = begin(db, child)["handle"]
    link(db, fid, a, child)
    assert state(db, child) == "active"
    failed = one(db, "ff_fail", handle=handle)
    assert (failed["outcome"], failed["public_state"]) == ("retry_scheduled", "waiting_children")
    assert one(db, "ff_fail", handle=handle)["public_state"] == "waiting_children"
    finish(db, a)
    row = take(db)
    assert (row["execution_id"], row["attempt_type"]) == (child, "retry")
    assert violations(db) == []


def test_a_member_that_delays_itself_while_its_group_is_undecided_waits_for_both(db, clock):
    now = clock.freeze()
    fid = flow(db)
    a, child = nodes(db, fid, 2)
    handle = begin(db, child)["handle"]
    link(db, fid, a, child)
    delayed = one(db, "ff_delay", handle=handle, delay_ms=100)
    assert (delayed["outcome"], delayed["public_state"], delayed["delay_until_ms"]) == (
        "delayed",
        "waiting_children",
        now + 100,
    )
    replay = one(db, "ff_delay", handle=handle, delay_ms=1)
    assert (replay["replayed"], replay["public_state"], replay["outcome"]) == (
        True,
        "waiting_children",
        "delayed",
    )
    finish(db, a)
    assert state(db, child) == "delayed"
    clock.advance(100)
    row = take(db)
    assert (row["execution_id"], row["handle_kind"]) == (child, "resumed")
    assert violations(db) == []


def test_a_running_child_whose_group_becomes_impossible_is_skipped_when_it_pauses(db):
    fid = flow(db)
    a, child = nodes(db, fid, 2)
    handle = begin(db, child)["handle"]
    link(db, fid, a, child)
    finish(db, a, "failed")
    assert state(db, child) == "active"
    delayed = one(db, "ff_delay", handle=handle, delay_ms=100)
    assert delayed["public_state"] == "skipped"
    assert one(db, "ff_delay", handle=handle, delay_ms=100)["replayed"]
    (attempt,) = table(db, "select state, outcome from ff_attempt where outcome = 'skipped'")
    assert attempt == {"state": "ended_cancelled", "outcome": "skipped"}
    assert violations(db) == []


def test_a_child_held_by_an_operator_stays_held(db):
    """R6 takes precedence over the dependencies; their result is applied at the unblock."""
    fid, (a,), child = fan_in(db, 1)
    db.execute(
        "update ff_execution set state = 'held' where execution_id = %s",
        [child.rsplit(":", maxsplit=1)[-1]],
    )
    finish(db, a, "failed")
    assert execution(db, child)["eligibility_state"] == "blocked_by_operator"
    assert group(db, fid, child)["group_state"] == "impossible"
    assert violations(db) == []


def test_what_was_left_is_dispatched_by_event_id(db):
    fid, members = chain(db, 3)
    row = leave_undispatched(db, fid, lambda: finish(db, members[0], "failed"))
    (event,) = table(db, "select event_id from ff_event where family = 'completion'")
    assert row["event_id"] == event["event_id"]
    assert (row["outcome"], row["counted"], row["dispatch_attempts"]) == ("failed", False, 0)
    assert state(db, members[1]) == "waiting_children"
    assert violations(db) == []
    done = one(db, "ff_dispatch_completion", event_id=row["event_id"])
    assert done == {
        "outcome": "advanced",
        "edges_resolved": 2,
        "children_released": 0,
        "children_skipped": 2,
        "siblings_cancelled": 0,
        "depth": 2,
    }
    again = one(db, "ff_dispatch_completion", event_id=row["event_id"])
    assert (again["outcome"], again["edges_resolved"]) == ("noop", 0)
    assert one(db, "ff_dispatch_completion", event_id=-1)["outcome"] == "noop"
    assert flow_state(db, fid) == "failed"
    assert violations(db) == []


def test_dispatch_counts_what_it_released_and_cancelled(db):
    fid, (a, b), child = fan_in(db, 2, "any_of")
    row = leave_undispatched(db, fid, lambda: finish(db, a))
    done = one(db, "ff_dispatch_completion", event_id=row["event_id"])
    assert (done["children_released"], done["siblings_cancelled"], done["edges_resolved"]) == (1, 1, 2)
    assert states(db, [b, child]) == ["cancelled", "waiting"]


@pytest.mark.parametrize(
    "args", [{"event_id": None}, {"event_id": 1, "max_edges": -1}, {"event_id": 1, "max_edges": None}]
)
def test_dispatch_checks_its_arguments(db, args):
    with refused("invalid_input"):
        one(db, "ff_dispatch_completion", **args)


def test_a_fan_out_beyond_the_limit_is_dispatched_in_parts(db):
    fid = flow(db)
    root, *children = nodes(db, fid, 8)
    for child in children:
        link(db, fid, root, child)
    row = leave_undispatched(db, fid, lambda: finish(db, root))
    for left in (4, 1):
        done = one(db, "ff_dispatch_completion", event_id=row["event_id"], max_edges=3)
        assert (done["outcome"], done["edges_resolved"]) == ("partial", 3)
        assert states(db, children).count("waiting_children") == left
        assert undispatched(db)[0]["counted"]
        assert describe(db, fid)["live_members"] == 7
        assert violations(db) == []
    done = one(db, "ff_dispatch_completion", event_id=row["event_id"], max_edges=3)
    assert (done["outcome"], done["edges_resolved"]) == ("advanced", 1)
    assert states(db, children) == ["waiting"] * 7
    assert violations(db) == []


def test_a_long_row_of_skips_is_done_fifty_levels_at_a_time(db):
    fid, members = chain(db, 120)
    finish(db, members[0], "failed")
    assert states(db, members).count("skipped") == 50
    assert violations(db) == []
    assert one(db, "ff_dispatch_completions") == {"processed": 50, "errors": 0, "more": True}
    assert claim(db) is None
    assert states(db, members[1:]) == ["skipped"] * 119
    assert undispatched(db) == []
    assert flow_state(db, fid) == "failed"
    assert violations(db) == []


def test_a_claim_that_finds_nothing_dispatches_what_was_left(db):
    fid, (a, b) = chain(db, 2)
    leave_undispatched(db, fid, lambda: finish(db, a))
    worker = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w"}
    db.execute("savepoint s")
    assert claim(db)["execution_id"] == b
    assert undispatched(db) == []
    db.execute("rollback to s")
    assert [r["execution_id"] for r in rows(db, "ff_claim_many", **worker)] == [b]
    db.execute("rollback to s")
    assert one(db, "ff_claim_for_worker", **worker)["execution_id"] == b
    db.execute("rollback to s")
    assert one(db, "ff_dispatch_completions", limit=0)["processed"] == 0
    assert one(db, "ff_dispatch_completions") == {"processed": 1, "errors": 0, "more": False}
    assert violations(db) == []


def test_the_next_operation_on_the_flow_dispatches_what_was_left(db):
    fid, (a, b) = chain(db, 2)
    leave_undispatched(db, fid, lambda: finish(db, a))
    node(db, fid)
    assert state(db, b) == "waiting"
    assert undispatched(db) == []


def test_dispatch_works_with_every_event_muted(db):
    for family in table(db, "select family from ff_event_family"):
        one(db, "ff_set_event_family", family=family["family"], muted=["*"])
    fid, (a, b) = chain(db, 2)
    finish(db, a)
    finish(db, b)
    assert flow_state(db, fid) == "completed"
    assert undispatched(db) == []
    fid, (a, b), child = fan_in(db, 2)
    with busy_flows(db):
        finish(db, a)
        finish(db, b)
    assert len(undispatched(db)) == 2
    assert claim(db)["execution_id"] == child
    assert table(db, "select * from ff_event where family <> 'operator'") == []


def test_members_complete_in_a_batch_as_one_by_one(db):
    _, (a, b), child = fan_in(db, 2)
    solo = one(db, "ff_create_execution", lane_id="default")["execution_id"]
    handles = [begin(db, eid)["handle"] for eid in (a, solo, b)]
    done = rows(
        db, "ff_complete_many", handles=[*handles, handles[0], "x"], results=[b"1", b"2", b"3", None, None]
    )
    assert [r["outcome"] for r in done] == ["completed"] * 4 + ["refused"]
    assert [r["replayed"] for r in done] == [False, False, False, True, False]
    assert states(db, [a, b, solo, child]) == ["completed"] * 3 + ["waiting"]
    assert {r["result"] for r in rows(db, "ff_read_dependency_inputs", execution_id=child)} == {b"1", b"3"}
    assert violations(db) == []


def test_a_lost_race_a_straggler_and_an_expected_failure_are_tolerated(db):
    fid, (a, b, c), child = fan_in(db, 3, "quorum", k=1, on_satisfied="let_run")
    finish(db, a, "failed")
    finish(db, b)
    finish(db, c, "failed")
    finish(db, child)
    assert flow_state(db, fid) == "completed"
    # For a member that needed it, the same failure is not ignored.
    fid, (a, b), child = fan_in(db, 2, "any_of", on_satisfied="let_run")
    strict = node(db, fid)
    link(db, fid, a, strict)
    finish(db, a, "failed")
    finish(db, b)
    finish(db, child)
    assert (state(db, strict), flow_state(db, fid)) == ("skipped", "failed")


def test_the_derived_state_says_what_a_flow_does(db, clock):
    clock.freeze()
    fid, (a, b) = chain(db, 2)
    assert describe(db, fid)["derived_state"] == "open"
    handle = begin(db, a)["handle"]
    assert describe(db, fid)["derived_state"] == "running"
    one(db, "ff_delay", handle=handle, delay_ms=100)
    assert describe(db, fid)["derived_state"] == "blocked"
    clock.advance(100)
    one(db, "ff_complete", handle=take(db)["handle"])
    finish(db, b)
    found = describe(db, fid)
    assert (found["derived_state"], found["members_completed"]) == ("completed", 2)


def test_an_end_that_was_put_off_is_not_dispatched_before_its_time(db, clock):
    clock.freeze()
    fid, (a, b) = chain(db, 2)
    leave_undispatched(db, fid, lambda: finish(db, a))
    db.execute("update ff_flow_dispatch set next_dispatch_at_ms = ff_now_ms() + 10")
    assert one(db, "ff_dispatch_completions")["processed"] == 0
    clock.advance(10)
    assert one(db, "ff_dispatch_completions")["processed"] == 1
    assert state(db, b) == "waiting"


def test_ends_in_a_flow_that_is_gone_are_forgotten(db):
    fid, (a, _) = chain(db, 2)
    row = leave_undispatched(db, fid, lambda: finish(db, a))
    db.execute("delete from ff_flow_core")
    db.execute("savepoint s")
    assert one(db, "ff_dispatch_completion", event_id=row["event_id"])["outcome"] == "noop"
    assert undispatched(db) == []
    db.execute("rollback to s")
    one(db, "ff_dispatch_completions")
    assert undispatched(db) == []


def test_a_flow_that_cannot_be_dispatched_is_put_off_and_does_not_stop_others(db):
    bad, (a, b) = chain(db, 2)
    leave_undispatched(db, bad, lambda: finish(db, a))
    _, (c, d) = chain(db, 2)
    with busy_flows(db):
        finish(db, c)
    db.execute(
        f"alter table ff_edge add constraint poison check (flow_id <> '{bad}' or edge_state = 'applied') not valid"
    )
    assert one(db, "ff_dispatch_completions") == {"processed": 1, "errors": 1, "more": False}
    assert (state(db, b), state(db, d)) == ("waiting_children", "waiting")
    (left,) = undispatched(db)
    assert (left["dispatch_attempts"], left["next_dispatch_at_ms"] > left["created_at_ms"]) == (1, True)
    assert one(db, "ff_dispatch_completions") == {"processed": 0, "errors": 0, "more": False}
