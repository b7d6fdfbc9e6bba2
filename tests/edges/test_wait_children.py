"""A parent that gathers children and waits for them."""

import pytest

from tests.flows.graph import begin, fan_in, finish, flow, link, node, nodes, policy, state, undispatched
from tests.sql import claim, create, events, execution, one, refused, rows, table, take, violations


def wait(db, handle):
    return one(db, "ff_wait_children", handle=handle)


def family(db, count, **edges):
    """A running parent and the children it waits for; flow, claim, children."""
    fid = flow(db)
    parent = node(db, fid)
    row = begin(db, parent)
    children = nodes(db, fid, count)
    for child in children:
        link(db, fid, child, parent, **edges)
    return fid, row, children


def test_a_parent_pauses_until_its_children_are_done_and_goes_on_with_the_same_attempt(db):
    _, row, children = family(db, 2)
    parent = row["execution_id"]
    assert wait(db, row["handle"]) == {"outcome": "waiting", "pending_children": 2, "replayed": False}
    assert state(db, parent) == "waiting_children"
    assert execution(db, parent)["attempt_state"] == "attempt_interrupted"
    assert events(db, parent)[-1] == "lease/released:wait_children"
    assert violations(db) == []
    for child in children:
        finish(db, child)
    assert state(db, parent) == "resumable"
    again = take(db)
    assert (again["execution_id"], again["handle_kind"], again["attempt_id"]) == (
        parent,
        "resumed",
        row["attempt_id"],
    )
    assert again["lease_epoch"] == row["lease_epoch"] + 1
    assert wait(db, again["handle"])["outcome"] == "ready"
    one(db, "ff_complete", handle=again["handle"])
    assert violations(db) == []


def test_with_nothing_to_wait_for_the_lease_stays(db):
    create(db)
    solo = take(db)
    assert wait(db, solo["handle"]) == {"outcome": "ready", "pending_children": 0, "replayed": False}
    fid = flow(db)
    member = begin(db, node(db, fid))
    assert wait(db, member["handle"])["outcome"] == "ready"
    policy(db, fid, member["execution_id"], "any_of")
    assert wait(db, member["handle"])["outcome"] == "ready"
    for row in (solo, member):
        one(db, "ff_renew", handle=row["handle"])


def test_children_that_finished_first_are_not_waited_for(db):
    _, row, children = family(db, 1)
    finish(db, children[0])
    assert wait(db, row["handle"]) == {"outcome": "ready", "pending_children": 0, "replayed": False}
    assert state(db, row["execution_id"]) == "active"


def test_a_parent_whose_child_failed_is_skipped_whichever_came_first(db):
    ends = []
    for late in (False, True):
        _, row, (child,) = family(db, 1)
        if late:
            assert wait(db, row["handle"])["outcome"] == "waiting"
            finish(db, child, "failed")
        else:
            finish(db, child, "failed")
            assert wait(db, row["handle"])["outcome"] == "skipped"
            assert wait(db, row["handle"]) == {"outcome": "skipped", "pending_children": 0, "replayed": True}
        parent = execution(db, row["execution_id"])
        query = "select state, outcome, failure_reason from ff_attempt where execution_id = %s"
        ends.append(
            [
                parent["public_state"],
                parent["failure_reason"],
                table(db, query, parent["execution_id"]),
                events(db, row["execution_id"])[-1],
            ]
        )
    assert ends[0] == ends[1]
    assert ends[0][0] == "skipped"
    assert violations(db) == []


def test_a_parent_sees_failures_through_any_terminal_edges(db):
    _, row, children = family(db, 2, dependency_kind="any_terminal")
    wait(db, row["handle"])
    finish(db, children[0], "failed")
    finish(db, children[1])
    again = take(db)
    assert again["execution_id"] == row["execution_id"]
    read = rows(db, "ff_read_dependency_inputs", execution_id=row["execution_id"])
    assert sorted(r["outcome"] for r in read) == ["failed", "success"]


def test_a_wait_repeated_with_the_same_handle_answers_the_same(db):
    _, row, children = family(db, 1)
    wait(db, row["handle"])
    assert wait(db, row["handle"]) == {"outcome": "waiting", "pending_children": 1, "replayed": True}
    finish(db, children[0])
    assert wait(db, row["handle"]) == {"outcome": "waiting", "pending_children": 1, "replayed": True}
    with refused("execution_not_active"):
        one(db, "ff_complete", handle=row["handle"])


def test_a_wait_is_refused_as_the_fence_says(db, clock):
    clock.freeze()
    _, row, _ = family(db, 1)
    fence = {name: row[name] for name in ("lease_id", "lease_epoch", "attempt_id")}
    call = {"execution_id": row["execution_id"], **fence}
    with refused("invalid_handle"):
        wait(db, "x")
    with refused("fence_required"):
        one(db, "ff_wait_children_execution", execution_id=row["execution_id"])
    with refused("partial_fence"):
        one(db, "ff_wait_children_execution", **{**call, "lease_id": None})
    with refused("invalid_input"):
        one(db, "ff_wait_children_execution", **call, source="x")
    with refused("stale_lease"):
        one(db, "ff_wait_children_execution", **{**call, "lease_epoch": 9})
    with refused("invalid_execution_id"):
        one(db, "ff_wait_children_execution", **{**call, "execution_id": "x"})
    with refused("execution_not_found"):
        one(
            db,
            "ff_wait_children_execution",
            **{**call, "execution_id": "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"},
        )
    clock.advance(60_000)
    with refused("lease_expired"):
        wait(db, row["handle"])
    one(db, "ff_revoke_lease", execution_id=begin_again(db, row)["execution_id"])
    assert claim(db, "nowhere") is None


def begin_again(db, row):
    """The parent, reclaimed."""
    found = rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w")
    return next(r for r in found if r["execution_id"] == row["execution_id"])


def test_a_revoked_lease_cannot_wait(db):
    _, row, _ = family(db, 1)
    one(db, "ff_revoke_lease", execution_id=row["execution_id"])
    with refused("lease_revoked"):
        wait(db, row["handle"])


def test_an_operator_makes_a_parent_wait_in_its_holders_place(db):
    _, row, children = family(db, 1)
    call = {"execution_id": row["execution_id"], "source": "operator_override"}
    assert one(db, "ff_wait_children_execution", **call)["outcome"] == "waiting"
    assert events(db, row["execution_id"])[-2:] == ["operator/overridden", "lease/released:override"]
    with refused("execution_not_active"):
        one(db, "ff_wait_children_execution", **call)
    with refused("execution_not_active"):
        wait(db, row["handle"])
    finish(db, children[0])
    assert state(db, row["execution_id"]) == "resumable"
    assert violations(db) == []


@pytest.mark.parametrize("strength", ["cancel_pending", "cancel_flow_only"])
def test_a_cancelled_flow_refuses_the_wait_unless_its_members_run_on(db, strength):
    fid, row, _ = family(db, 1)
    one(db, "ff_cancel_flow", flow_id=fid, policy=strength)
    if strength == "cancel_pending":
        with refused("flow_cancelled") as refusal:
            wait(db, row["handle"])
        assert refusal.detail["flow_id"] == str(fid)
        assert state(db, row["execution_id"]) == "active"
    else:
        assert wait(db, row["handle"])["outcome"] == "waiting"
    assert violations(db) == []


def test_crashed_work_is_reclaimed_at_once_and_may_wait_again(db, clock):
    clock.freeze()
    _, row, (child,) = family(db, 1)
    clock.advance(60_000)
    again = begin_again(db, row)
    assert again["handle_kind"] == "reclaimed"
    assert wait(db, again["handle"])["outcome"] == "waiting"
    assert state(db, child) == "active"


def test_a_quorum_of_children_is_enough(db):
    fid, ups, parent = fan_in(db, 3, "quorum", k=2)
    for upstream in ups[:2]:
        finish(db, upstream)
    row = take(db)
    assert row["execution_id"] == parent
    assert wait(db, row["handle"])["outcome"] == "ready"
    assert undispatched(db) == []
    assert state(db, ups[2]) == "cancelled"
    assert fid


@pytest.mark.usefixtures("dsn")  # each call is a transaction of its own
def test_an_override_that_finds_nothing_to_wait_for_stores_the_order_of_its_event(db):
    fid = flow(db)
    solo = begin(db, create(db))
    member = begin(db, node(db, fid))
    for row in (solo, member):
        eid = row["execution_id"]
        answer = one(db, "ff_wait_children_execution", execution_id=eid, source="operator_override")
        assert answer == {"outcome": "ready", "pending_children": 0, "replayed": False}
        assert events(db, eid)[-1] == "operator/overridden"
        assert violations(db) == []
        one(db, "ff_renew", handle=row["handle"])
