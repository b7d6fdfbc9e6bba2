"""Attaching policies to executions and flows, at creation and later; holding and unblocking by hand."""

import uuid

import pytest
from psycopg.types.json import Jsonb

from tests.quotas.support import ask, budget, limits, many, parked, policy, state, sweep, under
from tests.sql import claim, create, execution, one, refused, rows, take, violations

UNKNOWN_ID = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"


def attach(db, name="q", **target):
    return one(db, "ff_attach_quota", quota_policy_id=name, **target)["outcome"]


def detach(db, **target):
    return one(db, "ff_detach_quota", **target)["outcome"]


def block(db, eid, reason, **args):
    return one(db, "ff_block_execution_for_admission", execution_id=eid, reason=reason, **args)


def unblock(db, eid, **args):
    return one(db, "ff_unblock_execution", execution_id=eid, **args)


def flow_of(db, **args):
    return one(db, "ff_create_flow", **args)["flow_id"]


def test_an_attached_policy_binds_the_next_claim(db):
    policy(db, at_once=1)
    eids = many(db, 2)
    assert [attach(db, execution_id=eid) for eid in eids] == ["attached"] * 2
    assert attach(db, execution_id=eids[0]) == "already_attached"
    take(db)
    assert claim(db) is None
    assert execution(db, eids[1])["quota_policy_id"] == "q"
    assert violations(db) == []


def test_what_cannot_be_attached(db):
    policy(db)
    policy(db, "other")
    eid, ended = create(db), create(db)
    flow, cancelled = flow_of(db), flow_of(db)
    one(db, "ff_cancel_execution", execution_id=ended)
    one(db, "ff_cancel_flow", flow_id=cancelled)
    for target in ({}, {"execution_id": eid, "flow_id": flow}):
        with refused("invalid_input"):
            attach(db, **target)
        with refused("invalid_input"):
            detach(db, **target)
    with refused("quota_policy_not_found"):
        attach(db, "nobody", execution_id=eid)
    with refused("execution_not_found"):
        attach(db, execution_id=UNKNOWN_ID)
    with refused("invalid_execution_id"):
        attach(db, execution_id="x")
    with refused("flow_not_found"):
        attach(db, flow_id=uuid.uuid4())
    with refused("execution_already_terminal"):
        attach(db, execution_id=ended)
    with refused("flow_already_terminal"):
        attach(db, flow_id=cancelled)
    for target in ({"execution_id": eid}, {"flow_id": flow}):
        attach(db, **target)
        with refused("quota_attach_conflict") as refusal:
            attach(db, "other", **target)
        assert refusal.detail["attached"] == "q"
    with refused("execution_not_found"):
        detach(db, execution_id=UNKNOWN_ID)
    with refused("flow_not_found"):
        detach(db, flow_id=uuid.uuid4())


def test_a_running_execution_that_is_attached_is_counted(db):
    policy(db, at_once=1)
    eid = create(db)
    take(db)
    attach(db, execution_id=eid)
    assert limits(db)["active_concurrency"] == 1
    under(db)
    assert claim(db) is None


def test_a_flow_hands_its_policy_to_members_that_have_none(db):
    policy(db, at_once=1)
    policy(db, "own", at_once=9)
    flow = flow_of(db)
    ended = create(db, flow_id=flow)
    one(db, "ff_complete", handle=take(db)["handle"])
    plain, own = create(db, flow_id=flow), under(db, "own", flow_id=flow)
    assert attach(db, flow_id=flow) == "attached"
    assert attach(db, flow_id=flow) == "already_attached"
    later = create(db, flow_id=flow)
    batch = many(db, 2, flow_id=flow)
    have = {eid: execution(db, eid)["quota_policy_id"] for eid in (ended, plain, own, later, *batch)}
    assert have == {ended: None, plain: "q", own: "own", later: "q", batch[0]: "q", batch[1]: "q"}
    assert detach(db, flow_id=flow) == "detached"
    assert detach(db, flow_id=flow) == "not_attached"
    assert execution(db, plain)["quota_policy_id"] == "q"
    assert execution(db, create(db, flow_id=flow))["quota_policy_id"] is None
    assert violations(db) == []


def test_an_execution_added_to_a_flow_takes_its_limits(db):
    policy(db, at_once=1)
    budget(db, "b")
    flow = flow_of(db)
    attach(db, flow_id=flow)
    db.execute("update ff_flow_core set budget_ids = '{b}'")
    name = uuid.uuid4()
    member = uuid.UUID(bytes=name.bytes[:-1] + flow.bytes[-1:])
    eid = f"{{fp:{member.bytes[-1]}}}:{member}"
    create(db, execution_id=eid, lane="new")
    one(db, "ff_add_execution_to_flow", flow_id=flow, execution_id=eid)
    row = execution(db, eid)
    assert (row["quota_policy_id"], row["budget_ids"], row["limited"]) == ("q", ["b"], True)
    assert violations(db) == []
    take(db, lane="new")


def test_detaching_settles_what_was_parked(db):
    policy(db, at_once=1)
    eids = many(db, 2, "q")
    row = take(db)
    assert claim(db) is None
    assert detach(db, execution_id=eids[1]) == "detached"
    assert detach(db, execution_id=eids[1]) == "not_attached"
    assert execution(db, eids[1])["limited"] is False
    assert take(db)["execution_id"] == eids[1]
    with refused("slot_in_use"):
        detach(db, execution_id=row["execution_id"])
    one(db, "ff_revoke_lease", execution_id=row["execution_id"])
    assert detach(db, execution_id=row["execution_id"]) == "detached"
    assert violations(db) == []


def test_detaching_gives_a_reserved_slot_back(db):
    policy(db, at_once=1)
    eid = under(db)
    ask(db, eid)
    peer = under(db, lane="other")
    assert claim(db, lane="other") is None
    detach(db, execution_id=eid)
    assert state(db, peer) == "eligible_now"
    assert violations(db) == []


def test_limits_named_at_creation_must_exist(db):
    policy(db)
    budget(db, "b")
    for given, kind in (
        ({"quota_policy_id": "nobody"}, "quota_policy_not_found"),
        ({"budget_ids": ["b", "nobody"]}, "budget_not_found"),
    ):
        with refused(kind):
            create(db, policy=given)
        with refused(kind):
            rows(db, "ff_create_executions", lane_id="default", payloads=[b""], policy=given)
        node = {"key": "a", "lane_id": "default", "policy": given}
        with refused(kind) as refusal:
            rows(db, "ff_submit_flow", nodes=Jsonb([node]))
        assert refusal.detail["node"] == "a"
    eid = create(db, policy={"quota_policy_id": "q", "budget_ids": ["b"]})
    row = execution(db, eid)
    assert (row["quota_policy_id"], row["budget_ids"]) == ("q", ["b"])


def test_a_submitted_flow_keeps_to_the_limits_of_its_nodes(db):
    policy(db, at_once=1)
    nodes = [{"key": k, "lane_id": "default", "policy": {"quota_policy_id": "q"}} for k in "abc"]
    rows(db, "ff_submit_flow", nodes=Jsonb(nodes))
    take(db)
    assert claim(db) is None
    assert parked(db) == 2
    assert violations(db) == []


@pytest.mark.parametrize(
    ("reason", "eligibility", "public"),
    [
        ("waiting_for_quota", "blocked_by_quota", "rate_limited"),
        ("waiting_for_budget", "blocked_by_budget", "rate_limited"),
        ("paused_by_operator", "blocked_by_operator", "waiting"),
    ],
)
def test_blocking_by_hand_and_letting_go(db, reason, eligibility, public):
    policy(db, at_once=1)
    budget(db, "b")
    eid = under(db, policy={"budget_ids": ["b"]})
    assert block(db, eid, reason, detail="why") == {"outcome": "blocked", "eligibility_state": eligibility}
    assert block(db, eid, reason) == {"outcome": "already_blocked", "eligibility_state": eligibility}
    row = execution(db, eid)
    assert (row["public_state"], row["blocking_reason"], row["blocking_detail"]) == (public, reason, "why")
    other = next(r for r in ("waiting_for_quota", "paused_by_operator") if r != reason)
    with refused("execution_not_eligible"):
        block(db, eid, other)
    with refused("execution_not_eligible") as refusal:
        unblock(db, eid, expected_reason=other)
    assert refusal.detail["blocking_reason"] == reason
    assert unblock(db, eid, expected_reason=reason) == {"outcome": "unblocked", "public_state": "waiting"}
    assert unblock(db, eid) == {"outcome": "not_blocked", "public_state": "waiting"}
    take(db)
    assert unblock(db, eid) == {"outcome": "not_blocked", "public_state": "active"}
    assert violations(db) == []


def test_what_cannot_be_blocked(db):
    plain, ended = create(db, delay_ms=1000), create(db)
    one(db, "ff_cancel_execution", execution_id=ended)
    for reason in ("waiting_for_capable_worker", "waiting_for_delay", "", "x" * 5000):
        with refused("invalid_blocking_reason"):
            block(db, UNKNOWN_ID, reason)
    with refused("invalid_input"):
        block(db, UNKNOWN_ID, None)
    with refused("invalid_input"):
        block(db, UNKNOWN_ID, "paused_by_operator", not_before_ms=-1)
    for function in (unblock, lambda db, eid: block(db, eid, "paused_by_operator")):
        with refused("execution_not_found"):
            function(db, UNKNOWN_ID)
    with refused("execution_already_terminal"):
        block(db, ended, "paused_by_operator")
    with refused("execution_not_eligible"):
        block(db, plain, "paused_by_operator")
    assert unblock(db, plain)["outcome"] == "not_blocked"
    assert unblock(db, ended)["outcome"] == "not_blocked"
    ready = create(db)
    for reason in ("waiting_for_quota", "waiting_for_budget"):
        with refused("invalid_blocking_reason"):
            block(db, ready, reason)


def test_a_hold_outlives_everything_but_its_release(db):
    policy(db, at_once=1)
    flow = flow_of(db)
    eid, upstream = under(db, flow_id=flow), create(db, flow_id=flow, lane="up")
    block(db, eid, "paused_by_operator")
    assert claim(db) is None
    assert sweep(db) == 0
    one(db, "ff_add_dependency", flow_id=flow, upstream_execution_id=upstream, downstream_execution_id=eid)
    assert state(db, eid) == "blocked_by_operator"
    # The inputs are not there: letting it go does not make it runnable.
    assert unblock(db, eid)["public_state"] == "waiting_children"
    one(db, "ff_complete", handle=take(db, lane="up")["handle"])
    assert take(db)["execution_id"] == eid


def test_a_park_by_hand_ends_at_its_time(db, clock):
    now = clock.freeze()
    policy(db, at_once=1)
    eid = under(db)
    block(db, eid, "waiting_for_quota", not_before_ms=now + 1000)
    assert claim(db) is None
    clock.advance(1000)
    assert take(db)["execution_id"] == eid
