"""Building flows and ending their members, as a client would."""

import uuid
from contextlib import contextmanager
from itertools import pairwise

from psycopg.types.json import Jsonb

from tests.sql import one, rows, table

LANE = "default"


def flow(db, **args):
    """A new flow; its id."""
    return one(db, "ff_create_flow", **args)["flow_id"]


def node(db, flow_id, lane=LANE, **args):
    """A new member of a flow; its id."""
    return one(db, "ff_create_execution", lane_id=lane, flow_id=flow_id, **args)["execution_id"]


def nodes(db, flow_id, count, **args):
    return [node(db, flow_id, **args) for _ in range(count)]


def link(db, flow_id, upstream, downstream, **args):
    """The downstream waits for the upstream."""
    return one(
        db,
        "ff_add_dependency",
        flow_id=flow_id,
        upstream_execution_id=upstream,
        downstream_execution_id=downstream,
        **args,
    )


def stage(db, flow_id, upstream, downstream, **args):
    return one(
        db,
        "ff_stage_dependency_edge",
        flow_id=flow_id,
        upstream_execution_id=upstream,
        downstream_execution_id=downstream,
        **args,
    )


def apply(db, flow_id, edge_id):
    return one(db, "ff_apply_dependency_to_child", flow_id=flow_id, edge_id=edge_id)


def policy(db, flow_id, downstream, kind, **args):
    return one(
        db,
        "ff_set_edge_group_policy",
        flow_id=flow_id,
        downstream_execution_id=downstream,
        policy=kind,
        **args,
    )["outcome"]


def begin(db, eid, **args):
    """An operator takes one execution; the claim."""
    return one(db, "ff_issue_grant_and_claim", execution_id=eid, **args)


def finish(db, eid, outcome="success", result=None):
    """Ends an execution that can be claimed."""
    if outcome == "cancelled":
        return one(db, "ff_cancel_execution", execution_id=eid)
    handle = begin(db, eid)["handle"]
    if outcome == "success":
        return one(db, "ff_complete", handle=handle, result=result)
    return one(db, "ff_fail", handle=handle, classification="permanent", reason="bad")


def state(db, eid):
    return one(db, "ff_read_execution_state", execution_id=eid)["public_state"]


def states(db, eids):
    return [state(db, eid) for eid in eids]


def describe(db, flow_id):
    return one(db, "ff_describe_flow", flow_id=flow_id)


def flow_state(db, flow_id):
    return describe(db, flow_id)["public_flow_state"]


def group(db, flow_id, downstream):
    """What a member waits for."""
    found = [
        g
        for g in rows(db, "ff_list_edge_groups", flow_id=flow_id)
        if g["downstream_execution_id"] == downstream
    ]
    assert len(found) == 1
    return found[0]


def edge(db, flow_id, upstream, downstream):
    found = [
        e
        for e in rows(db, "ff_list_edges", flow_id=flow_id, execution_id=upstream, direction="outgoing")
        if e["downstream_execution_id"] == downstream
    ]
    assert len(found) == 1
    return found[0]


def chain(db, count, **args):
    """A flow in which each member waits for the one before it."""
    flow_id = flow(db, **args)
    members = nodes(db, flow_id, count)
    for upstream, downstream in pairwise(members):
        link(db, flow_id, upstream, downstream)
    return flow_id, members


def fan_in(db, count, kind=None, **args):
    """A flow whose last member waits for the others."""
    flow_id = flow(db)
    *upstreams, child = nodes(db, flow_id, count + 1)
    if kind:
        policy(db, flow_id, child, kind, **args)
    for upstream in upstreams:
        link(db, flow_id, upstream, child)
    return flow_id, upstreams, child


def flow_events(db, flow_id):
    query = "select event_type from ff_event where flow_id = %s and family = 'flow' order by event_id"
    return [row["event_type"] for row in table(db, query, flow_id)]


def undispatched(db):
    return table(db, "select * from ff_flow_dispatch order by event_id")


@contextmanager
def busy_flows(db):
    """Meanwhile every flow seems to be locked by another transaction: ends of members are noted, and not dispatched."""
    (found,) = table(db, "select pg_get_functiondef('ff__try_flow(uuid)'::regprocedure) as source")
    db.execute(
        "create or replace function ff.ff__try_flow(p_flow_id uuid) returns boolean language sql as 'select false'"
    )
    yield
    db.execute(found["source"])


def strange_flow():
    """The id of a flow that does not exist, in partition 7."""
    return uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")


STRANGER = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddef07"


def submit(db, nodes_, edges=(), groups=(), **args):
    return rows(
        db,
        "ff_submit_flow",
        nodes=Jsonb(list(nodes_)),
        edges=Jsonb(list(edges)),
        groups=Jsonb(list(groups)),
        **args,
    )


def leave_undispatched(db, fid, end):
    """Ends a member as if its flow was locked."""
    with busy_flows(db):
        end()
    (row,) = undispatched(db)
    return row
