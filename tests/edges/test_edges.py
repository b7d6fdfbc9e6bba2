"""Edges and edge groups: staging, applying, policies, cycles."""

import uuid
from itertools import pairwise

import pytest

from tests.flows.graph import (
    STRANGER,
    apply,
    begin,
    chain,
    describe,
    edge,
    fan_in,
    finish,
    flow,
    group,
    link,
    node,
    nodes,
    policy,
    stage,
    state,
    states,
    strange_flow,
    submit,
)
from tests.sql import claim, create, one, refused, violations


def test_a_staged_edge_has_no_effect_until_it_is_applied(db):
    fid = flow(db)
    a, b = nodes(db, fid, 2)
    row = stage(db, fid, a, b, data_passing_ref="x")
    assert (row["outcome"], row["graph_revision"]) == ("staged", 3)
    assert state(db, b) == "waiting"
    found = edge(db, fid, a, b)
    assert (found["edge_state"], found["dependency_kind"], found["data_passing_ref"]) == (
        "staged",
        "success_only",
        "x",
    )
    assert found["edge_id"].bytes[15] == fid.bytes[15]
    assert apply(db, fid, row["edge_id"]) == {
        "outcome": "applied",
        "unsatisfied_count": 1,
        "group_state": "pending",
        "child_public_state": "waiting_children",
    }
    assert apply(db, fid, row["edge_id"])["outcome"] == "already_applied"
    assert describe(db, fid)["edge_count"] == 1
    assert violations(db) == []


def test_staging_again_by_edge_id_is_recognised_before_the_revision_is_checked(db):
    fid = flow(db)
    a, b = nodes(db, fid, 2)
    mine = uuid.uuid4()
    assert stage(db, fid, a, b, edge_id=mine, expected_graph_revision=2)["outcome"] == "staged"
    again = stage(db, fid, a, b, edge_id=mine, expected_graph_revision=2)
    assert again == {"outcome": "already_staged", "edge_id": mine, "graph_revision": 3}
    with refused("dependency_already_exists") as refusal:
        stage(db, fid, a, b, edge_id=mine, dependency_kind="any_terminal")
    assert refusal.detail["dependency_kind"] == "success_only"
    with refused("dependency_already_exists"):
        stage(db, fid, b, a, edge_id=mine)
    link(db, fid, a, b, edge_id=mine)
    assert stage(db, fid, a, b, edge_id=mine)["outcome"] == "already_staged"
    assert link(db, fid, a, b, edge_id=mine)["outcome"] == "already_applied"


def test_staging_is_refused_in_the_order_of_the_checks(db):
    fid = flow(db)
    a, b = nodes(db, fid, 2)
    solo = create(db)
    with refused("invalid_execution_id"):
        stage(db, fid, "x", b)
    with refused("self_referencing_edge"):
        stage(db, strange_flow(), a, a, dependency_kind="x")
    with refused("invalid_dependency_kind"):
        stage(db, strange_flow(), a, b, dependency_kind="x")
    with refused("flow_not_found"):
        stage(db, strange_flow(), a, b)
    with refused("stale_graph_revision") as refusal:
        stage(db, fid, a, solo, expected_graph_revision=1)
    assert refusal.detail["current"] == 2
    with refused("execution_not_in_flow") as refusal:
        stage(db, fid, solo, STRANGER)
    assert (refusal.detail["which"], refusal.detail["flow_id"]) == ("upstream", None)
    other = flow(db)
    stranger = node(db, other)
    with refused("execution_not_in_flow") as refusal:
        stage(db, fid, a, stranger)
    assert (refusal.detail["which"], refusal.detail["flow_id"]) == ("downstream", str(other))
    first = stage(db, fid, a, b)["edge_id"]
    with refused("dependency_already_exists") as refusal:
        stage(db, fid, a, b)
    assert refusal.detail["edge_id"] == str(first)
    assert refusal.detail["edge_state"] == "staged"
    with refused("cycle_detected") as refusal:
        stage(db, fid, b, a)
    assert refusal.detail["path"] == [a, b]
    c = node(db, fid)
    finish(db, c)
    with refused("execution_already_terminal"):
        stage(db, fid, a, c)
    one(db, "ff_cancel_flow", flow_id=fid, policy="cancel_flow_only")
    with refused("flow_already_terminal"):
        stage(db, fid, a, c, expected_graph_revision=0)
    with refused("flow_already_terminal"):
        apply(db, fid, first)


def test_an_edge_into_a_decided_race_is_refused(db):
    fid, (a, b), child = fan_in(db, 2, "any_of", on_satisfied="let_run")
    finish(db, a)
    late = node(db, fid)
    with refused("edge_group_already_decided") as refusal:
        stage(db, fid, late, child)
    assert refusal.detail["group_state"] == "satisfied"
    fid, (a, b), child = fan_in(db, 2)
    begin(db, begin_child(db, fid, child, [a, b]))
    late = node(db, fid)
    assert link(db, fid, late, child)["group_state"] == "pending"
    assert violations(db) == []


def begin_child(db, fid, child, upstreams):
    for upstream in upstreams:
        finish(db, upstream)
    assert group(db, fid, child)["group_state"] == "satisfied"
    return child


def test_applying_names_what_is_missing(db):
    with refused("flow_not_found"):
        apply(db, strange_flow(), uuid.uuid4())
    fid = flow(db)
    with refused("edge_not_found"):
        apply(db, fid, uuid.uuid4())
    with refused("invalid_input"):
        apply(db, fid, None)
    a, b = nodes(db, fid, 2)
    edge_id = stage(db, fid, a, b)["edge_id"]
    finish(db, b)
    with refused("execution_already_terminal"):
        apply(db, fid, edge_id)


@pytest.mark.parametrize(
    ("outcome", "kind", "edge_state", "child_state"),
    [
        ("success", "success_only", "satisfied", "waiting"),
        ("failed", "success_only", "failed", "skipped"),
        ("cancelled", "success_only", "failed", "skipped"),
        ("failed", "any_terminal", "satisfied", "waiting"),
    ],
)
def test_an_edge_whose_upstream_has_ended_is_resolved_when_it_is_applied(
    db, outcome, kind, edge_state, child_state
):
    fid = flow(db)
    a, b, keep = nodes(db, fid, 3)
    finish(db, a, outcome)
    row = link(db, fid, a, b, dependency_kind=kind)
    assert row["child_public_state"] == child_state
    assert row["unsatisfied_count"] == (0 if edge_state == "satisfied" else 1)
    found = edge(db, fid, a, b)
    assert (found["edge_state"], found["upstream_outcome"]) == (edge_state, outcome)
    assert state(db, keep) == "waiting"
    assert violations(db) == []


def test_an_edge_from_a_skipped_upstream_is_skipped(db):
    fid, (a, b) = chain(db, 2)
    finish(db, a, "failed")
    c = node(db, fid)
    assert link(db, fid, b, c)["group_state"] == "impossible"
    assert edge(db, fid, b, c)["edge_state"] == "skipped"
    assert state(db, c) == "skipped"


def test_ready_delayed_and_running_children_meet_a_new_edge_differently(db, clock):
    now = clock.freeze()
    fid = flow(db)
    a, ready, running = nodes(db, fid, 3)
    delayed = node(db, fid, delay_until_ms=now + 50)
    handle = begin(db, running)["handle"]
    assert [link(db, fid, a, child)["child_public_state"] for child in (ready, delayed, running)] == [
        "waiting_children",
        "waiting_children",
        "active",
    ]
    clock.advance(100)
    assert (
        one(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w")["execution_id"]
        == a
    )
    one(db, "ff_complete", handle=handle)
    assert violations(db) == []


def test_a_satisfied_group_that_wants_all_waits_again_for_a_new_edge(db):
    fid, (a,), child = fan_in(db, 1)
    finish(db, a)
    assert state(db, child) == "waiting"
    b = node(db, fid)
    assert link(db, fid, b, child)["group_state"] == "pending"
    assert state(db, child) == "waiting_children"
    finish(db, b)
    assert state(db, child) == "waiting"
    assert violations(db) == []


def test_a_policy_is_set_before_the_first_edge(db):
    fid = flow(db)
    a, b = nodes(db, fid, 2)
    assert policy(db, fid, b, "any_of") == "set"
    assert policy(db, fid, b, "quorum", k=2, on_satisfied="let_run") == "set"
    assert policy(db, fid, b, "quorum", k=2, on_satisfied="let_run") == "already_set"
    assert state(db, b) == "waiting"
    stage(db, fid, a, b)
    assert policy(db, fid, b, "quorum", k=2, on_satisfied="let_run") == "already_set"
    with refused("edge_group_policy_already_fixed") as refusal:
        policy(db, fid, b, "all_of")
    assert refusal.detail["policy"] == "quorum"
    assert policy(db, fid, a, "all_of") == "set"
    found = group(db, fid, a)
    assert (found["policy"], found["k"], found["on_satisfied"], found["n_edges"]) == ("all_of", None, None, 0)
    assert policy(db, fid, a, "all_of", on_satisfied="let_run") == "already_set"
    assert violations(db) == []


@pytest.mark.parametrize(
    "args",
    [
        {"kind": "none"},
        {"kind": None},
        {"kind": "quorum"},
        {"kind": "quorum", "k": 0},
        {"kind": "any_of", "k": 1},
        {"kind": "all_of", "k": 1},
        {"kind": "any_of", "on_satisfied": "x"},
        {"kind": "any_of", "on_satisfied": None},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_before_the_flow_is_looked_at(db, args):
    with refused("invalid_input"):
        policy(db, strange_flow(), STRANGER, **args)


def test_a_policy_is_refused_in_the_order_of_the_checks(db):
    with refused("flow_not_found"):
        policy(db, strange_flow(), STRANGER, "any_of")
    fid = flow(db)
    a = node(db, fid)
    with refused("execution_not_in_flow"):
        policy(db, fid, create(db), "any_of")
    policy(db, fid, a, "any_of")
    finish(db, a)
    assert policy(db, fid, a, "any_of") == "already_set"
    with refused("flow_already_terminal"):
        policy(db, fid, a, "all_of")


def test_cycles_are_found_however_long_and_whatever_the_state_of_the_edges(db):
    fid = flow(db)
    members = nodes(db, fid, 30)
    for n, (a, b) in enumerate(pairwise(members)):
        (stage if n % 2 else link)(db, fid, a, b)
    with refused("cycle_detected") as refusal:
        link(db, fid, members[-1], members[0])
    assert refusal.detail["path"] == members
    assert refusal.detail["length"] == 30
    link(db, fid, members[0], members[-1])
    with refused("cycle_detected") as refusal:
        link(db, fid, members[20], members[10])
    assert refusal.detail["path"] == members[10:21]


def test_a_cycle_in_a_graph_of_thousands_is_found_quickly(db):
    nodes_ = [{"key": f"n{n}", "lane_id": "default"} for n in range(3000)]
    edges = [{"from": f"n{n}", "to": f"n{n + 1}"} for n in range(2999)]
    made = submit(db, nodes_, edges)
    ids = [row["execution_id"] for row in made]
    fid = made[0]["flow_id"]
    with refused("cycle_detected") as refusal:
        stage(db, fid, ids[-1], ids[0])
    assert refusal.detail["length"] == 3000
    assert len(refusal.detail["path"]) == 100
    assert stage(db, fid, ids[0], ids[-1])["outcome"] == "staged"


def test_a_diamond_of_many_levels_is_no_cycle_and_takes_no_time(db):
    """As many ways as 2 to the 40th: each member is visited once."""
    nodes_ = [{"key": f"{n}{side}", "lane_id": "default"} for n in range(40) for side in "ab"]
    edges = [
        {"from": f"{n}{one_}", "to": f"{n + 1}{two}"} for n in range(39) for one_ in "ab" for two in "ab"
    ]
    made = submit(db, nodes_, edges)
    ids = {row["node_key"]: row["execution_id"] for row in made}
    fid = made[0]["flow_id"]
    with refused("cycle_detected"):
        stage(db, fid, ids["39a"], ids["0b"])
    assert stage(db, fid, ids["0a"], ids["39b"])["outcome"] == "staged"


def test_no_member_that_waits_is_claimed(db):
    fid, members = chain(db, 3)
    for expected in members:
        row = claim(db)
        assert row["execution_id"] == expected
        assert claim(db) is None
        one(db, "ff_complete", handle=row["handle"])
    assert states(db, members) == ["completed"] * 3
    assert describe(db, fid)["public_flow_state"] == "completed"
