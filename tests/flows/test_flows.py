"""Creating, building and starting flows; their members."""

import uuid

import pytest

from tests.flows.graph import (
    STRANGER,
    describe,
    finish,
    flow,
    flow_events,
    flow_state,
    group,
    link,
    node,
    nodes,
    policy,
    stage,
    state,
    states,
    strange_flow,
)
from tests.sql import claim, create, execution, one, refused, rows, take, violations


def test_a_flow_starts_open_and_empty(db):
    row = one(db, "ff_create_flow", flow_kind="etl", namespace="n", tags={"a.b": "c"})
    assert row["outcome"] == "created"
    assert (row["public_flow_state"], row["graph_revision"]) == ("open", 0)
    found = describe(db, row["flow_id"])
    assert (found["flow_kind"], found["namespace"], found["tags"]) == ("etl", "n", {"a.b": "c"})
    assert (found["node_count"], found["edge_count"], found["live_members"]) == (0, 0, 0)
    assert (found["derived_state"], found["claimable"], found["terminal_at_ms"]) == ("open", True, None)
    assert flow_events(db, row["flow_id"]) == ["created"]


def test_creating_a_flow_again_is_recognised(db):
    fid = uuid.uuid4()
    first = one(db, "ff_create_flow", flow_id=fid)
    again = one(db, "ff_create_flow", flow_id=fid, hold=True)
    assert (first["outcome"], again["outcome"]) == ("created", "already_satisfied")
    assert again["public_flow_state"] == "open"
    assert flow_events(db, fid) == ["created"]
    for other in ({"flow_kind": "x"}, {"namespace": "x"}):
        with refused("flow_conflict") as refusal:
            one(db, "ff_create_flow", flow_id=fid, **other)
        assert refusal.detail["flow_id"] == str(fid)


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("invalid_input", {"flow_kind": ""}),
        ("invalid_input", {"flow_kind": "x" * 129}),
        ("invalid_input", {"namespace": "a\nb"}),
        ("invalid_input", {"hold": None}),
        ("invalid_input", {"tags": None}),
        ("invalid_tag_key", {"tags": {"A": "b"}}),
    ],
)
def test_what_a_flow_says_about_itself_is_checked(db, kind, args):
    with refused(kind):
        one(db, "ff_create_flow", **args)


def test_members_created_in_a_flow_take_its_partition_and_are_counted(db):
    fid = flow(db)
    eid = node(db, fid)
    assert int(eid[4:].split("}")[0]) == fid.bytes[15]
    row = execution(db, eid)
    assert (row["flow_id"], row["ready_in"]) == (fid, row["queue_id"])
    found = describe(db, fid)
    assert (found["node_count"], found["live_members"], found["graph_revision"]) == (1, 1, 1)
    assert found["members_waiting"] == 1
    assert one(db, "ff_resolve_execution_flow_id", execution_id=eid)["flow_id"] == fid
    assert take(db)["flow_id"] == fid


def test_a_batch_of_members_is_created_in_one_call(db):
    fid = flow(db)
    made = rows(db, "ff_create_executions", lane_id="default", payloads=[b"1", b"2", b"3"], flow_id=fid)
    assert [row["outcome"] for row in made] == ["created"] * 3
    found = describe(db, fid)
    assert (found["node_count"], found["live_members"], found["graph_revision"]) == (3, 3, 3)
    with refused("flow_not_found"):
        rows(db, "ff_create_executions", lane_id="default", payloads=[b"1"], flow_id=strange_flow())
    one(db, "ff_cancel_flow", flow_id=fid)
    with refused("flow_already_terminal"):
        rows(db, "ff_create_executions", lane_id="default", payloads=[b"1"], flow_id=fid)
    assert violations(db) == []


def test_creating_in_a_flow_checks_partition_then_flow_then_duplicates_then_its_state(db):
    fid = flow(db)
    one(db, "ff_create_flow", flow_id=uuid.UUID(int=8))
    with refused("partition_mismatch") as refusal:
        node(db, uuid.UUID(int=9), execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    assert refusal.detail["flow_partition"] == 9
    with refused("flow_not_found"):
        node(db, strange_flow(), execution_id=STRANGER)
    eid = node(db, fid, idempotency_key="k")
    one(db, "ff_cancel_flow", flow_id=fid)
    row = one(db, "ff_create_execution", lane_id="default", flow_id=fid, idempotency_key="k")
    assert (row["outcome"], row["execution_id"], row["public_state"]) == ("duplicate", eid, "cancelled")
    with refused("idempotency_conflict"):
        one(db, "ff_create_execution", lane_id="default", idempotency_key="k")
    with refused("flow_already_terminal") as refusal:
        node(db, fid)
    assert refusal.detail["public_flow_state"] == "cancelled"
    assert describe(db, fid)["node_count"] == 1


def solo_in(db, partition, **args):
    """A solo execution in a partition."""
    eid = f"{{fp:{partition}}}:{uuid.uuid4().hex[:30]}{partition:02x}"
    eid = f"{eid[: eid.index(':', 4) + 1]}{uuid.UUID(eid[-32:])}"
    return create(db, execution_id=eid, **args)


def add(db, fid, eid):
    return one(db, "ff_add_execution_to_flow", flow_id=fid, execution_id=eid)


@pytest.mark.parametrize("how", ["revoked", "expired", "ungranted", "paused"])
@pytest.mark.parametrize("way", ["start", "cancel"])
def test_what_becomes_ready_in_a_flow_that_is_being_built_waits_for_its_start(db, clock, how, way):
    clock.freeze()
    fid = uuid.UUID(int=7)
    flow(db, flow_id=fid, hold=True)
    eid = solo_in(db, 7)
    if how == "ungranted":
        one(
            db,
            "ff_issue_claim_grant",
            execution_id=eid,
            worker_id="w",
            worker_instance_id="w",
            grant_ttl_ms=1000,
        )
    else:
        handle = take(db)["handle"]
    add(db, fid, eid)
    if how == "revoked":
        one(db, "ff_revoke_lease", execution_id=eid)
    elif how == "paused":
        one(db, "ff_delay", handle=handle, delay_ms=0)
    clock.advance(10**6)
    if how == "expired":
        one(db, "ff_mark_lease_expired_if_due", execution_id=eid)
    elif how == "ungranted":
        one(db, "ff_sweep_claim_grants")
    assert claim(db) is None
    assert violations(db) == []
    if way == "start":
        one(db, "ff_start_flow", flow_id=fid)
    else:
        one(db, "ff_cancel_flow", flow_id=fid, policy="cancel_flow_only")
    assert violations(db) == []
    assert claim(db)["execution_id"] == eid


def test_an_execution_is_added_to_a_flow_once_and_for_good(db):
    fid, other = uuid.UUID(int=7), uuid.UUID(int=263)
    flow(db, flow_id=fid)
    flow(db, flow_id=other)
    eid = solo_in(db, 7)
    row = add(db, fid, eid)
    assert row == {"outcome": "added", "execution_id": eid, "node_count": 1, "graph_revision": 1}
    assert add(db, fid, eid)["outcome"] == "already_member"
    with refused("already_member_of_different_flow") as refusal:
        add(db, other, eid)
    assert refusal.detail["flow_id"] == str(fid)
    finish(db, eid)
    assert flow_state(db, fid) == "completed"
    assert add(db, fid, eid)["outcome"] == "already_member"
    assert violations(db) == []


def test_adding_is_refused_in_the_order_of_the_checks(db):
    fid = uuid.UUID(int=7)
    with refused("invalid_execution_id"):
        add(db, fid, "nonsense")
    with refused("partition_mismatch"):
        add(db, fid, "{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee08")
    with refused("flow_not_found"):
        add(db, fid, STRANGER)
    flow(db, flow_id=fid)
    with refused("execution_not_found"):
        add(db, fid, STRANGER)
    done = solo_in(db, 7)
    finish(db, done)
    with refused("execution_already_terminal"):
        add(db, fid, done)
    one(db, "ff_cancel_flow", flow_id=fid, policy="cancel_flow_only")
    with refused("flow_already_terminal"):
        add(db, fid, done)
    with refused("invalid_input"):
        add(db, None, done)


def test_a_flow_that_had_ended_opens_again_for_a_new_member(db):
    fid = flow(db)
    finish(db, node(db, fid))
    assert flow_state(db, fid) == "completed"
    one(db, "ff_set_flow_tag", flow_id=fid, key="a.b", value="c")
    eid = node(db, fid)
    found = describe(db, fid)
    assert (found["public_flow_state"], found["terminal_at_ms"], found["live_members"]) == ("open", None, 1)
    finish(db, eid, "failed")
    assert flow_state(db, fid) == "failed"
    late = solo_in(db, fid.bytes[15])
    add(db, fid, late)
    assert flow_events(db, fid) == ["created", "completed", "reopened", "failed", "reopened"]
    assert violations(db) == []


def test_members_of_a_held_flow_are_not_handed_out_until_it_starts(db):
    fid = flow(db, hold=True)
    a, b = nodes(db, fid, 2)
    free = create(db)
    edge_id = stage(db, fid, a, b)["edge_id"]
    assert (state(db, a), state(db, b)) == ("waiting", "waiting")
    assert take(db)["execution_id"] == free
    assert claim(db) is None
    assert rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w") == []
    worker = {"worker_id": "w", "worker_instance_id": "w"}
    with refused("execution_not_eligible") as refusal:
        one(db, "ff_issue_claim_grant", execution_id=a, **worker)
    assert refusal.detail["flow_claimable"] is False
    with refused("execution_not_eligible"):
        one(db, "ff_issue_grant_and_claim", execution_id=a)
    assert one(db, "ff_evaluate_flow_eligibility", execution_id=a)["status"] == "flow_held"
    assert violations(db) == []

    assert one(db, "ff_start_flow", flow_id=fid) == {"outcome": "started", "applied_edges": 1}
    assert one(db, "ff_start_flow", flow_id=fid) == {"outcome": "already_started", "applied_edges": 0}
    assert one(db, "ff_describe_edge", flow_id=fid, edge_id=edge_id)["edge_state"] == "applied"
    assert states(db, [a, b]) == ["waiting", "waiting_children"]
    assert take(db)["execution_id"] == a
    assert flow_events(db, fid) == ["created", "started"]
    assert violations(db) == []


def test_a_grant_given_before_its_execution_joined_a_held_flow_is_not_redeemed(db):
    fid = uuid.UUID(int=7)
    flow(db, flow_id=fid, hold=True)
    eid = solo_in(db, 7)
    worker = {"worker_id": "w", "worker_instance_id": "w"}
    grant = one(db, "ff_issue_claim_grant", execution_id=eid, **worker)["grant_id"]
    add(db, fid, eid)
    with refused("execution_not_eligible"):
        one(db, "ff_claim_execution", execution_id=eid, grant_id=grant, **worker)


def test_a_held_flow_does_not_end_before_it_starts(db):
    fid = flow(db, hold=True)
    finish(db, node(db, fid), "cancelled")
    assert flow_state(db, fid) == "building"
    one(db, "ff_start_flow", flow_id=fid)
    assert flow_state(db, fid) == "failed"
    assert violations(db) == []


def test_starting_resolves_edges_whose_upstream_has_ended(db):
    fid = flow(db, hold=True)
    bad, good, skipped, ready, any_end = nodes(db, fid, 5)
    stage(db, fid, bad, skipped)
    stage(db, fid, good, skipped)
    stage(db, fid, bad, any_end, dependency_kind="any_terminal")
    finish(db, bad, "cancelled")
    one(db, "ff_start_flow", flow_id=fid)
    assert states(db, [bad, good, skipped, ready, any_end]) == [
        "cancelled",
        "waiting",
        "skipped",
        "waiting",
        "waiting",
    ]
    assert violations(db) == []


def test_starting_is_refused_for_a_quorum_that_has_too_few_edges(db):
    fid = flow(db, hold=True)
    a, b, c = nodes(db, fid, 3)
    policy(db, fid, c, "quorum", k=3)
    stage(db, fid, a, c)
    link(db, fid, b, c)
    with refused("quorum_unreachable") as refusal:
        one(db, "ff_start_flow", flow_id=fid)
    assert {k: refusal.detail[k] for k in ("downstream", "k", "n")} == {"downstream": c, "k": 3, "n": 2}
    assert flow_state(db, fid) == "building"
    stage(db, fid, node(db, fid), c)
    assert one(db, "ff_start_flow", flow_id=fid)["applied_edges"] == 2
    assert group(db, fid, c)["n_edges"] == 3
    assert violations(db) == []


def test_a_flow_that_is_unknown_or_cancelled_does_not_start(db):
    with refused("flow_not_found"):
        one(db, "ff_start_flow", flow_id=strange_flow())
    with refused("invalid_input"):
        one(db, "ff_start_flow", flow_id=None)
    fid = flow(db, hold=True)
    one(db, "ff_cancel_flow", flow_id=fid)
    with refused("flow_already_terminal"):
        one(db, "ff_start_flow", flow_id=fid)


def test_starting_settles_members_as_they_are(db, clock):
    now = clock.freeze()
    fid = uuid.UUID(int=7)
    flow(db, flow_id=fid, hold=True)
    running, late = solo_in(db, 7), solo_in(db, 7)
    one(db, "ff_issue_grant_and_claim", execution_id=running)
    for eid in (running, late):
        add(db, fid, eid)
    delayed = node(db, fid, delay_until_ms=now + 1000)
    for eid in (running, delayed):
        stage(db, fid, late, eid)
    one(db, "ff_start_flow", flow_id=fid)
    assert states(db, [running, late, delayed]) == ["active", "waiting", "waiting_children"]
    assert execution(db, delayed)["delay_until_ms"] == now + 1000
    finish(db, late)
    assert states(db, [running, delayed]) == ["active", "delayed"]
    clock.advance(1000)
    assert take(db)["execution_id"] == delayed
    assert violations(db) == []


def test_a_member_that_waits_is_not_claimable_because_its_grant_has_ended(db, clock):
    """Its delay had ended when it was reserved; then it joined a flow, in which it waits for another member."""
    clock.freeze()
    fid = uuid.UUID(int=7)
    flow(db, flow_id=fid, hold=True)
    upstream, late = node(db, fid), solo_in(db, 7, delay_ms=10)
    clock.advance(10)
    worker = {"worker_id": "w", "worker_instance_id": "w-1"}
    one(db, "ff_issue_claim_grant", execution_id=late, grant_ttl_ms=10, **worker)
    add(db, fid, late)
    stage(db, fid, upstream, late)
    one(db, "ff_start_flow", flow_id=fid)
    clock.advance(10)
    assert one(db, "ff_sweep_claim_grants")["processed"] == 1
    assert violations(db) == []
    assert take(db)["execution_id"] == upstream
    assert claim(db) is None
    assert state(db, late) == "waiting_children"


def test_tags_of_a_flow_are_set_read_and_removed(db):
    fid = flow(db)
    revision = describe(db, fid)["graph_revision"]
    tag = {"flow_id": fid, "key": "a.b"}
    assert rows(db, "ff_get_flow_tag", **tag) == []
    assert one(db, "ff_set_flow_tag", **tag, value="1")["changed"]
    assert not one(db, "ff_set_flow_tag", **tag, value="1")["changed"]
    assert one(db, "ff_get_flow_tag", **tag)["value"] == "1"
    assert one(db, "ff_set_flow_tag", **tag, value=None)["changed"]
    assert rows(db, "ff_get_flow_tag", **tag) == []
    assert describe(db, fid)["graph_revision"] == revision
    with refused("flow_not_found"):
        one(db, "ff_set_flow_tag", flow_id=strange_flow(), key="a.b", value="c")
    with refused("invalid_tag_key"):
        one(db, "ff_set_flow_tag", flow_id=fid, key="A", value="c")
    with refused("invalid_input"):
        one(db, "ff_set_flow_tag", flow_id=fid, key="a.b", value="x" * 4097)
    for n in range(64):
        one(db, "ff_set_flow_tag", flow_id=fid, key=f"a.b{n}", value="c")
    with refused("invalid_input"):
        one(db, "ff_set_flow_tag", flow_id=fid, key="a.b64", value="c")
